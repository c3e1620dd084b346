import Logging

/// Forgets rows that are older than they are kept, sleeping until the next one is.
actor Sweeper {
    private let outbox: Outbox
    private let logger: Logger

    /// Events grow old without a row of their own to wake for.
    private static let longestSleep = Duration.seconds(3_600)
    /// Devices are looked at as often.
    private static let devicesPause = Duration.seconds(24 * 3_600)
    /// The same of records of e-mails, all of which are read.
    private static let digestsPause = Duration.seconds(600)

    init(_ outbox: Outbox, logger: Logger) {
        self.outbox = outbox
        self.logger = logger
    }

    /// Until cancelled.
    func run() async {
        var (devicesDue, digestsDue) = (outbox.time.now(), outbox.time.now())
        while !Task.isCancelled {
            if devicesDue <= outbox.time.now() {
                do { try await SilentDevices(outbox: outbox).remove() } catch {
                    logger.error("silent devices cannot be removed", metadata: ["error": "\(error)"])
                }
                devicesDue = outbox.time.now() + Sweeper.devicesPause.milliseconds
            }
            if digestsDue <= outbox.time.now() {
                do { try await OldDigests(outbox: outbox).forget() } catch {
                    logger.error("old records of e-mails cannot be deleted", metadata: ["error": "\(error)"])
                }
                digestsDue = outbox.time.now() + Sweeper.digestsPause.milliseconds
            }
            var next: Int64?
            do { next = try await outbox.purge() } catch {
                logger.error("old rows cannot be deleted", metadata: ["error": "\(error)"])
            }
            let latest = outbox.time.now() + Sweeper.longestSleep.milliseconds
            do { try await outbox.time.sleepUntil(min(next ?? latest, latest)) } catch { return }
        }
    }
}

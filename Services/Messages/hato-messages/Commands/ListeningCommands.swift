import ArgumentParser
import HatoCommand
import HatoModel
import HatoRPC

struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen", abstract: Messages.Listen.summary,
        discussion: """
            Prints a line for each notification until it is interrupted. When the connection is lost it goes on from the \
            last notification as soon as the service responds again.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions
    @OptionGroup var databaseOption: DatabaseOption
    @OptionGroup var query: QueryOptions
    @Argument(help: "The path.") var path: String
    @Option(help: "Only what came after this version; with --epoch.") var since: UInt64?
    @Option(help: "The epoch the version belongs to.") var epoch: String?
    @Option(help: "Gather the changes of so many milliseconds.") var coalesceMs: Int?

    private func request() throws -> Messages.Listen {
        var request = Messages.Listen(
            database: try databaseOption.name(), path: try TreePath(path), query: try query.query())
        request.since = since
        request.epoch = epoch
        request.coalesceMs = coalesceMs
        return request
    }

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            var listener = MessagesListener(try request()) { try await client.subscribe($0) }
            listener.whenLost = { output.reportLoss($0) }
            try await output.showAll(listener.makeAsyncIterator(), stream)
        }
    }
}

struct FollowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "follow", abstract: Messages.Follow.summary,
        discussion: """
            Prints a line for each commit until it is interrupted. When the connection is lost it goes on behind the last \
            one as soon as the service responds again. For administrators.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Option(help: "The last version that is known; 0: from the oldest that is kept. Without it: from now on.")
    var after: UInt64?
    @Option(help: "The epoch that version belongs to.") var epoch: String?
    @Option(help: "What to follow, e.g. /chats/{chat}/messages/{id}; may be repeated.") var pattern: [String] = []

    private func request() throws -> Messages.Follow {
        Messages.Follow(
            database: try databaseOption.name(), after: after, epoch: epoch,
            patterns: pattern.isEmpty ? nil : try pattern.map { try FeedPattern($0) })
    }

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            var follower = MessagesFollower(try request()) { try await client.subscribe($0) }
            follower.whenLost = { output.reportLoss($0) }
            try await output.showAll(follower.makeAsyncIterator(), stream)
        }
    }
}

extension CommandOutput {
    fileprivate func reportLoss(_ error: RPCError) {
        let reason = error.reason ?? error.message
        complain("\(MessagesTarget.command): lost the connection (\(reason)); trying to go on")
    }

    /// Prints notifications until they or `maxEvents` end; if the server ends them, that is a failure after the last
    /// line.
    fileprivate func showAll<Request>(
        _ notifications: ResumingEvents<Request>.Iterator, _ options: StreamOptions
    ) async throws {
        var (notifications, count) = (notifications, 0)
        do {
            while try await notifications.next() != nil {
                try showAsItCame(notifications.notification)
                count += 1
                if count == options.maxEvents { return }
            }
        } catch let cancelled as Messages.Cancelled {
            try showAsItCame(notifications.notification)
            throw CommandFailure(.notAllowed, "the server ended the listener: \(cancelled.reason)")
        }
    }

    private func showAsItCame(_ event: RPCEvent?) throws {
        guard let event else { return }
        try showLine(.object(["method": .string(event.method), "params": .object(event.params)]))
    }
}

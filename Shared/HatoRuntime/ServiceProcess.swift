import CAllocator
import Foundation
public import HatoModel
import HatoRPC
public import Logging
import Metrics
import Synchronization
import UnixSignals

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A started service: what the process needs to announce and to stop it.
public protocol RunningService: Sendable {
    /// The members of the ready line besides `ready` and `pid`, e.g.
    /// `{"service":"messages","listening":"127.0.0.1:7702"}`.
    var announcement: JSONObject { get }
    /// Stops accepting, finishes accepted requests, closes; returns at the latest after `grace`.
    func shutdown(grace: Duration) async
    /// Waits until the service can no longer work (its store has failed) and returns the reason; nil when cancelled.
    /// The process then ends, so that its supervisor can start it again.
    func failure() async -> String?
}

/// Runs a service as a process: settings, log, metrics, the ready line, signals and exit codes (protocol §8).
///
/// An executable's `serve` has three steps: declare the settings, open the store, start the service.
/// ```swift
/// let process = ServiceProcess(service: "messages", declared: ServeSettings.declared(defaultPort: 7702) + [...])
/// let code = await process.run(arguments) { start in
///     let store = try RocksDBStore.open(folder: start.settings["data"])
///     return try await MessagesServer.start(try start.serverConfiguration(version: "0.1.0"), store, start.logger)
/// }
/// ```
public struct ServiceProcess: Sendable {
    /// The inputs of a service's start.
    public struct Start: Sendable {
        /// The name on the wire, e.g. `messages`.
        public var service: String
        /// The settings it runs with.
        public var settings: Settings
        /// The environment it was started in.
        public var environment: [String: String]
        /// The log.
        public var logger: Logger
        /// The metrics of the process in Prometheus text format, for `service.metrics`.
        public var metricsText: @Sendable () async -> String
        /// The files that connections leave free; nil where nothing limits connections, as in tests.
        var openFiles: OpenFilesPlan?
        /// Runs its argument before each scrape.
        public var beforeScrape: @Sendable (@escaping @Sendable () async -> Void) -> Void

        /// Publishes the statistics of a service's store.
        public func show(storeOf service: String, _ statistics: @escaping @Sendable () -> [String: Double]) {
            let figures = StoreFigures(of: service, statistics)
            beforeScrape { figures.refresh() }
        }
    }

    /// The name on the wire, e.g. `messages`.
    public var service: String
    /// The declared settings.
    public var declared: [Setting]

    /// The number of servers in this process, which share its open files.
    public var servers: Int

    /// What of the settings their declarations do not check; throws `SettingsError`. `config` and the start call it.
    public var check: @Sendable (Settings) throws -> Void

    public init(
        service: String, declared: [Setting], servers: Int = 1,
        check: @Sendable @escaping (Settings) throws -> Void = { _ in }
    ) {
        self.service = service
        self.declared = declared
        self.servers = servers
        self.check = check
    }

    /// Resolves the value of each setting.
    public var resolver: SettingsResolver { SettingsResolver(service: service, declared: declared) }

    /// Prints the effective settings as one JSON object, secrets hidden; returns the exit code.
    public func showSettings(_ arguments: [String]) -> Int32 {
        do {
            let settings = try resolver.resolve(arguments: arguments, environment: ProcessInfo.processInfo.environment)
            try check(settings)
            guard let object = settings.shownAsJSON.object else { return 0 }
            if OutputLine.print(object) { return 0 }
            complain("cannot write: \(String(cString: strerror(errno)))")
            return 74
        } catch {
            complain("\(error)")
            return 78
        }
    }

    /// Runs the service until a signal stops it; returns the exit code of protocol §8.
    ///
    /// `start` throws `SettingsError` for a problem of the settings (exit code 78); every other error is an I/O error
    /// (74) or, when it is unexpected, internal (70).
    public func run(
        _ arguments: [String], start: @Sendable (Start) async throws -> any RunningService
    ) async -> Int32 {
        do {
            let settings = try resolver.resolve(arguments: arguments, environment: ProcessInfo.processInfo.environment)
            try check(settings)
            do { return try await run(settings, start: start) } catch let error as RPCServerError {
                guard case .cannotListen(_, let port, _) = error else { throw error }
                complain("\(SettingsError(cannotListen: error, port: port, settings))")
                return 74
            } catch let error as TLSFileError {
                throw SettingsError(error, "tls")
            }
        } catch let error as SettingsError {
            complain("\(error)")
            return 78
        } catch let error as RPCError {
            complain(error.message)
            return 70
        } catch {
            complain("\(error)")
            return 74
        }
    }

    private func run(
        _ settings: Settings, start: @Sendable (Start) async throws -> any RunningService
    ) async throws -> Int32 {
        let logger = Self.logger(service, settings)
        logger.info("allocator", metadata: ["name": "\(String(cString: hato_allocator_name()))"])
        let openFiles = openFiles(settings, logger)
        let registry = PrometheusRegistry()
        MetricsSystem.bootstrap(registry)
        let stop = await Self.stopSignal()
        let running = try await start(
            Start(
                service: service, settings: settings, environment: ProcessInfo.processInfo.environment, logger: logger,
                metricsText: { await registry.scrape() }, openFiles: openFiles,
                beforeScrape: { registry.beforeScrape($0) }))
        let metrics: MetricsEndpoint?
        do { metrics = try await endpoint(settings, registry) } catch {
            await running.shutdown(grace: .zero)
            throw error
        }
        warnAboutOpenDoor(settings, logger)
        announce(running, metrics?.port)
        let failure = await stopped(running, by: stop, or: settings.flag("exit-with-stdin"))
        if let failure { logger.critical("stopping: the service has failed", metadata: ["cause": "\(failure)"]) }
        if failure == nil { logger.info("stopping") }
        let (graceSeconds, code): (Int, Int32) = (settings.integer("grace-seconds"), failure == nil ? 0 : 74)
        endAtLatest(inSeconds: graceSeconds + Self.closingSeconds, with: code, logger)
        await running.shutdown(grace: .seconds(graceSeconds))
        await metrics?.stop()
        return code
    }

    /// In which a service closes its store after its grace.
    private static let closingSeconds = 5

    /// Ends the process when requests that were accepted still run then: each may be short, but they are many. What was
    /// acknowledged is on disk, and no client waits any more.
    private func endAtLatest(inSeconds seconds: Int, with code: Int32, _ logger: Logger) {
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: TimeInterval(seconds))
            logger.warning("stopping takes too long: the process ends", metadata: ["seconds": "\(seconds)"])
            _exit(code)
        }
    }

    /// Raises the limit of open files, and logs the limit and the number of connections it allows.
    private func openFiles(_ settings: Settings, _ logger: Logger) -> OpenFilesPlan {
        let limit = OpenFilesLimit.raised()
        let reserve = settings.integer(ServeSettings.openFilesReserve)
        let plan = OpenFilesPlan(limit: limit.now, reserve: reserve, servers: servers)
        logger.info(
            "open files",
            metadata: ["limit": "\(limit.now)", "before": "\(limit.before)", "reserve": "\(plan.reserve)"])
        let wanted = settings.integer("connections-max")
        if wanted > plan.connectionsMax {
            logger.notice(
                "connections-max is lowered to what the limit of open files allows",
                metadata: ["wanted": "\(wanted)", "connections": "\(plan.connectionsMax)"])
        } else {
            logger.info("connections", metadata: ["max": "\(wanted)"])
        }
        return plan
    }

    private func endpoint(_ settings: Settings, _ registry: PrometheusRegistry) async throws -> MetricsEndpoint? {
        guard settings.text("metrics-port") != nil else { return nil }
        let host = settings[ServeSettings.metricsHost]
        let port = settings.integer("metrics-port")
        return try await MetricsEndpoint(host: host, port: port) { await registry.scrape() }
    }

    /// Returns at the first signal, or at the end of standard input if the setting `exit-with-stdin` is on; or with the
    /// reason when the service fails.
    private func stopped(
        _ running: any RunningService, by stop: AsyncStream<Void>, or endsWithInput: Bool
    ) async -> String? {
        await withTaskGroup { group in
            group.addTask {
                for await _ in stop {}
                return String?.none
            }
            if endsWithInput {
                group.addTask {
                    await Self.inputEnded()
                    return nil
                }
            }
            group.addTask { await running.failure() }
            let reason = await group.next() ?? nil
            group.cancelAll()
            return reason
        }
    }

    /// Waits for the end of standard input on a thread of its own: `read` blocks, and a cancelled wait must not keep
    /// the process alive.
    private static func inputEnded() async {
        let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            continuation.finish()
        }
        for await _ in ended {}
    }

    /// Yields the first signal. A second one ends the process at once. One task reads the signals for the whole life of
    /// the process: their sequence allows a single reader.
    private static func stopSignal() async -> AsyncStream<Void> {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let (first, continuation) = AsyncStream.makeStream(of: Void.self)
        Task {
            var isStopping = false
            for await _ in signals {
                if isStopping { exit(130) }
                isStopping = true
                continuation.finish()
            }
        }
        return first
    }

    private func announce(_ running: any RunningService, _ metricsPort: Int?) {
        var line: JSONObject = ["ready": true]
        for member in running.announcement.members { line[member.name] = member.value }
        line["pid"] = .number(Double(getpid()))
        if let metricsPort { line["metricsPort"] = .number(Double(metricsPort)) }
        OutputLine.print(line)
    }

    private func warnAboutOpenDoor(_ settings: Settings, _ logger: Logger) {
        let host = settings["host"]
        guard !["127.0.0.1", "::1", "localhost"].contains(host), settings.text("tls-certificate") == nil else { return }
        logger.warning(
            "listening beyond loopback without TLS: tokens travel in the clear", metadata: ["host": "\(host)"])
    }

    /// The logger of a service, configured by its settings.
    public static func logger(_ service: String, _ settings: Settings) -> Logger {
        let level = Logger.Level(rawValue: settings["log-level"]) ?? .info
        let format = StandardErrorLogHandler.Format(rawValue: settings["log-format"]) ?? .text
        return Logger(label: "hato.\(service)") { StandardErrorLogHandler(label: $0, format: format, level: level) }
    }

    private func complain(_ text: String) {
        let line = Array("hato-\(service): \(text)\n".utf8)
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// Prints one line of JSON on standard output.
public enum OutputLine {
    /// Returns false, and sets `errno`, when not all of it could be written.
    @discardableResult
    public static func print(_ object: JSONObject) -> Bool {
        var writer = JSONWriter()
        writer.write(.object(object))
        let line = writer.bytes + [UInt8(ascii: "\n")]
        // Written directly to the descriptor: the C library would buffer a line for a pipe, and its reader would wait.
        return line.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) } == line.count
    }
}

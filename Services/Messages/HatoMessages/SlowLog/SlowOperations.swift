import HatoModel
import HatoRules
import HatoStorage
import Logging
import Synchronization

/// Logs which operations took long, and why.
///
/// It logs the shape of a path, as the rules name it (`/chats/$chat/messages/*`), or the whole path if configured, and
/// never values, tokens or users. The number of lines a minute is limited; the log has the number of those left out.
final class SlowOperations: Sendable {
    struct Settings: Sendable {
        /// Operations that take longer are logged; nil: none.
        var threshold: Duration?
        var linesPerMinuteMax: Int
        var showsPaths = false
    }

    private let settings: Settings
    private let logger: Logger
    /// Goes forward only, from wherever it began.
    private let clock: @Sendable () -> Duration
    private let lines: Mutex<SlowLines>

    init(_ settings: Settings, logger: Logger, clock: @escaping @Sendable () -> Duration) {
        self.settings = settings
        self.logger = logger
        self.clock = clock
        lines = Mutex(SlowLines(max: settings.linesPerMinuteMax))
    }

    /// The clock of all watches.
    var now: Duration { clock() }

    /// Nil when its time is not measured.
    func watch(_ method: String, database: DatabaseName? = nil, path: TreePath? = nil) -> OperationWatch? {
        guard settings.threshold != nil else { return nil }
        return OperationWatch(method, database: database, path: path, at: clock())
    }

    /// The operation has its response.
    ///
    /// - Parameter catalogue: its rules give the shape of the path.
    func ended(_ watch: OperationWatch?, _ catalogue: Catalogue) {
        guard let watch, let threshold = settings.threshold else { return }
        let end = clock()
        guard end - watch.start > threshold, let leftOut = lines.withLock({ $0.admit(at: end) }) else { return }
        let phases = watch.phases(until: end)
        let reason = phases.max { $0.time < $1.time }
        var metadata: Logger.Metadata = [
            "method": "\(watch.method)", "reason": "\(reason?.phase.rawValue ?? "")",
            "milliseconds": "\((end - watch.start).wholeMilliseconds)", "rowsRead": "\(watch.rows.count)",
        ]
        if let reason { metadata["reasonMilliseconds"] = "\(reason.time.wholeMilliseconds)" }
        if watch.database != .default { metadata["database"] = "\(watch.database)" }
        if let path = watch.path { metadata["path"] = "\(shown(path, of: watch.database, catalogue))" }
        if leftOut > 0 { metadata["leftOut"] = "\(leftOut)" }
        logger.notice("slow operation", metadata: metadata)
    }

    /// A path as the log may show it: its shape, unless whole paths are wanted.
    func shown(_ path: TreePath, of database: DatabaseName, _ catalogue: Catalogue) -> String {
        if settings.showsPaths { return path.text }
        let rules = catalogue.newest.byName[database]?.rules
        return rules?.shape(of: path) ?? path.keys.map { _ in "/*" }.joined()
    }

    /// From time to time: says how many were left out if no further line has.
    func reportLeftOut() {
        guard let leftOut = lines.withLock({ $0.takeLeftOut(at: clock()) }) else { return }
        logger.notice("slow operations were left out", metadata: ["leftOut": "\(leftOut)"])
    }
}

/// Decides which slow operations get a line: the first ones of each minute.
struct SlowLines {
    private let max: Int
    private var minuteBegan: Duration?
    private var written = 0
    private var leftOut = 0

    private static let minute = Duration.seconds(60)

    init(max: Int) { self.max = max }

    /// How many were left out since the last line; nil when this one is, too.
    mutating func admit(at now: Duration) -> Int? {
        if isOver(at: now) {
            minuteBegan = now
            written = 0
        }
        guard written < max else {
            leftOut += 1
            return nil
        }
        written += 1
        defer { leftOut = 0 }
        return leftOut
    }

    /// Those that were left out in a minute that is over; nil: none.
    mutating func takeLeftOut(at now: Duration) -> Int? {
        guard leftOut > 0, isOver(at: now) else { return nil }
        defer { leftOut = 0 }
        return leftOut
    }

    private func isOver(at now: Duration) -> Bool { minuteBegan.map { now - $0 >= Self.minute } ?? true }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}

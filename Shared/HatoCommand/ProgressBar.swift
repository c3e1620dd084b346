/// The progress of long work, drawn on stderr when that is a terminal, at most ten times a second.
///
/// Owned by one task. Call `finish` before anything else is written.
public struct ProgressBar: ~Copyable {
    private static let cells = 30
    private static let interval: Duration = .milliseconds(100)

    private let label: String
    /// Nil when it is unknown.
    private let total: Int?
    private let output: CommandOutput
    private var lastDrawn: ContinuousClock.Instant?
    private var done = 0

    public init(_ label: String, total: Int?, output: CommandOutput) {
        self.label = label
        self.total = total
        self.output = output
    }

    /// Adds to the count and draws it when enough time has passed.
    public mutating func advance(by count: Int = 1) {
        done += count
        guard output.showsProgress else { return }
        let now = ContinuousClock.now
        if let lastDrawn, now - lastDrawn < Self.interval { return }
        lastDrawn = now
        output.draw("\r" + Self.line(label, done: done, total: total) + "\u{1B}[K")
    }

    /// Draws the last state and ends the line.
    public mutating func finish() {
        guard output.showsProgress, lastDrawn != nil else { return }
        lastDrawn = nil
        output.draw("\r" + Self.line(label, done: done, total: total) + "\u{1B}[K\n")
    }

    static func line(_ label: String, done: Int, total: Int?) -> String {
        guard let total, total > 0 else { return "\(label) \(done)" }
        let share = min(1, Double(done) / Double(total))
        let filled = Int(share * Double(cells))
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: cells - filled)
        return "\(label) \(bar) \(Int(share * 100)) % (\(done)/\(total))"
    }
}

/// How long the publisher's thread does work of one kind before other work has its turn: one piece at least.
struct PublisherTurn {
    private let end: ContinuousClock.Instant
    private var hasBegun = false

    init(milliseconds: Int) { end = ContinuousClock.now.advanced(by: .milliseconds(milliseconds)) }

    /// Whether one more piece may be done in this turn; to be asked for each.
    mutating func takesOne() -> Bool {
        defer { hasBegun = true }
        return !hasBegun || ContinuousClock.now < end
    }
}

import Foundation

/// What a sink has received, and how it responds.
///
/// `@unchecked Sendable`: the condition guards all of it.
final class SinkLog: @unchecked Sendable {
    /// The name of the member of a notification's data that numbers it.
    static let numberName = "bench"
    private static let pattern = Array("\"\(numberName)\":\"".utf8)
    private static let numbersMax = 4_000_000

    private let changed = NSCondition()
    private var state = State()
    /// The number of requests that a command waits for.
    private var wanted: Int?

    private struct State {
        var isSilent = false
        var delay: Double = 0
        /// Requests, and the time of the last one.
        var count = 0
        var last: UInt64 = 0
        /// Requests with a number that had arrived.
        var repeated = 0
        /// The time of arrival by number; 0: none.
        var arrivals: [UInt64] = []
        var body: [UInt8] = []
    }

    /// How a request gets its response: after so many milliseconds; nil: never.
    var delay: Double? { changed.withLock { state.isSilent ? nil : state.delay } }

    func received(_ body: [UInt8]) {
        let now = Clock.now()
        let digits = body.withUnsafeBytes { ResponseText.member(Self.pattern, of: $0) }
        let number = digits.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        changed.withLock {
            state.count += 1
            state.last = now
            if let number, 0..<Self.numbersMax ~= number { arrived(number, now) }
            if state.body.isEmpty { state.body = body }
            if let wanted, state.count >= wanted { changed.broadcast() }
        }
    }

    private func arrived(_ number: Int, _ now: UInt64) {
        if number >= state.arrivals.count {
            state.arrivals += [UInt64](repeating: 0, count: number + 1 - state.arrivals.count)
        }
        if state.arrivals[number] == 0 { state.arrivals[number] = now } else { state.repeated += 1 }
    }

    // MARK: Commands

    /// Forgets what has been received, and keeps how it responds.
    func clear() {
        changed.withLock {
            let (isSilent, delay) = (state.isSilent, state.delay)
            state = State()
            (state.isSilent, state.delay) = (isSilent, delay)
        }
    }

    func respond(after milliseconds: Double?) {
        changed.withLock { (state.isSilent, state.delay) = (milliseconds == nil, milliseconds ?? 0) }
    }

    /// The requests, those that were repeated, and the time of the last one, when there are so many or at the limit.
    func count(atLeast wanted: Int, within seconds: Double) -> (count: Int, repeated: Int, last: UInt64) {
        let limit = Date(timeIntervalSinceNow: seconds)
        return changed.withLock {
            self.wanted = wanted
            while state.count < wanted, changed.wait(until: limit) {}
            self.wanted = nil
            return (state.count, state.repeated, state.last)
        }
    }

    func arrivals(_ range: Range<Int>) -> [UInt64] {
        changed.withLock { range.map { $0 < state.arrivals.count ? state.arrivals[$0] : 0 } }
    }

    /// Of the first request since `clear`.
    var body: [UInt8] { changed.withLock { state.body } }
}

import Testing

@testable import HatoGateway

/// Which clients get nothing more before they have taken what they have.
@Suite struct UntakenSharesTests {
    private static let limits = UntakenShares.Limits(bytesMax: 1_000, perClientMax: 400, stoppedMsMax: 10)

    private static func holder(_ number: Int) -> UntakenShares.Holder { .init(loop: 0, number: number) }

    /// The value, for calls inside of expectations.
    private final class Shares {
        private(set) var value = UntakenShares(UntakenSharesTests.limits)

        func changed(_ holder: UntakenShares.Holder, of client: String, to bytes: Int, at now: Int64) -> Bool {
            value.changed(holder, of: client, to: bytes, at: now)
        }

        func review(at now: Int64) -> Bool { value.review(at: now) }
        func isStopped(_ client: String) -> Bool { value.isStopped(client) }
        func overdue(at now: Int64) -> [UntakenShares.Holder] { value.overdue(at: now) }
        var stoppedCount: Int { value.stoppedCount }
        var bytes: Int { value.bytes }
    }

    @Test func aClientWithMoreThanItsPartIsStoppedUntilItHasTakenAQuarter() {
        let shares = Shares()
        #expect(!shares.changed(Self.holder(1), of: "a", to: 400, at: 0) && !shares.isStopped("a"))
        #expect(shares.changed(Self.holder(2), of: "a", to: 1, at: 0) && shares.isStopped("a"))
        #expect(shares.stoppedCount == 1 && !shares.isStopped("b"))
        #expect(!shares.changed(Self.holder(1), of: "a", to: 300, at: 0) && shares.isStopped("a"))
        #expect(shares.changed(Self.holder(1), of: "a", to: 299, at: 0) && !shares.isStopped("a"))
        #expect(shares.stoppedCount == 0 && shares.bytes == 300)
    }

    @Test func aClientThatHasTakenAllGoesOn() {
        let shares = Shares()
        _ = shares.changed(Self.holder(1), of: "a", to: 900, at: 0)
        #expect(shares.changed(Self.holder(1), of: "a", to: 0, at: 0))
        #expect(!shares.isStopped("a") && shares.bytes == 0 && shares.stoppedCount == 0)
    }

    @Test func withTooManyBytesOnlyClientsWithMoreThanAnEqualShareAreStopped() {
        let shares = Shares()
        for (number, client) in ["a", "b", "c"].enumerated() {
            _ = shares.changed(Self.holder(number), of: client, to: 320, at: 0)
        }
        #expect(shares.stoppedCount == 0)
        // An equal share of four is 250.
        #expect(shares.changed(Self.holder(9), of: "d", to: 50, at: 0))
        #expect(["a", "b", "c"].allSatisfy { shares.isStopped($0) } && !shares.isStopped("d"))
        #expect(!shares.isStopped("e"))
        // Only one that takes goes on, as long as there are too many.
        #expect(shares.changed(Self.holder(0), of: "a", to: 250, at: 0) && !shares.isStopped("a"))
        #expect(shares.isStopped("b") && shares.isStopped("c"))
        // Three quarters end it, in all and for each.
        #expect(shares.changed(Self.holder(1), of: "b", to: 130, at: 0))
        #expect(!shares.isStopped("b") && shares.isStopped("c"))
        #expect(shares.changed(Self.holder(2), of: "c", to: 300, at: 0))
        #expect(shares.stoppedCount == 0)
    }

    @Test func theLargestConnectionsOfAClientThatIsStoppedForTooLongAreOverdue() {
        let shares = Shares()
        for (number, bytes) in [100, 20, 200, 90].enumerated() {
            _ = shares.changed(Self.holder(number), of: "a", to: bytes, at: 5)
        }
        #expect(shares.isStopped("a"))
        #expect(shares.overdue(at: 14).isEmpty)
        #expect(shares.overdue(at: 15) == [Self.holder(2)])
        #expect(shares.changed(Self.holder(2), of: "a", to: 0, at: 16) && shares.overdue(at: 99).isEmpty)
    }

    @Test func aClientThatGoesOnInBetweenIsNotOverdue() {
        let shares = Shares()
        for time in stride(from: Int64(0), to: 100, by: 8) {
            _ = shares.changed(Self.holder(1), of: "a", to: 500, at: time)
            #expect(shares.overdue(at: time + 7).isEmpty)
            _ = shares.changed(Self.holder(1), of: "a", to: 100, at: time + 7)
        }
    }

    /// Whatever is taken and when, too many bytes always have a client that is stopped, and then an overdue connection:
    /// nothing waits for ever.
    @Test func tooManyBytesNeverStayWithoutAnEnd() {
        let failures = SeededShares.failures(300) { random in
            let shares = Shares()
            var held: [Int: Int] = [:]
            var now: Int64 = 0
            for _ in 0..<60 {
                let number = Int.random(in: 0..<12, using: &random)
                let bytes = Bool.random(using: &random) ? 0 : Int.random(in: 0...300, using: &random)
                held[number] = bytes
                now += Int64.random(in: 0...3, using: &random)
                _ = shares.changed(Self.holder(number), of: "c\(number % 5)", to: bytes, at: now)
                let clients = Dictionary(grouping: held, by: { "c\($0.key % 5)" })
                    .mapValues { $0.reduce(0) { $0 + $1.value } }
                guard shares.bytes == clients.values.reduce(0, +) else { return "the sum is wrong" }
                for (client, bytes) in clients where bytes == 0 && shares.isStopped(client) { return "stopped at 0" }
                for (client, bytes) in clients where bytes > 400 && !shares.isStopped(client) {
                    return "\(client) goes on with \(bytes)"
                }
                guard shares.stoppedCount == clients.keys.filter({ shares.isStopped($0) }).count else {
                    return "the count is wrong"
                }
            }
            _ = shares.review(at: now)
            for holder in shares.overdue(at: now + 10) {
                _ = shares.changed(holder, of: "c\(holder.number % 5)", to: 0, at: now + 10)
            }
            _ = shares.review(at: now + 10)
            for holder in shares.overdue(at: now + 30) {
                _ = shares.changed(holder, of: "c\(holder.number % 5)", to: 0, at: now + 30)
            }
            return shares.bytes <= 1_000 ? nil : "\(shares.bytes) bytes stay"
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}

/// Random numbers that a seed repeats.
private struct SeededShares: RandomNumberGenerator {
    private var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 33)
    }

    /// Runs `body` with the seeds from 1 on. Returns the failures with their seeds.
    static func failures(_ count: UInt64, _ body: (inout SeededShares) -> String?) -> [String] {
        (1...count).compactMap { seed in
            var random = SeededShares(state: seed)
            return body(&random).map { "seed \(seed): \($0)" }
        }
    }
}

import HatoRPC
import Testing

@testable import HatoGateway

/// Which clients get nothing more before they have taken what they have, and which connections are closed.
@Suite struct UntakenSharesTests {
    private static let limits = UntakenShares.Limits(
        bytesMax: 1_000, perClientMax: 400,
        progress: .init(stalledMsMax: 1_000, slowMsMax: 10_000, bytesPerSecondMin: 10, drainMsMax: 1_000_000))

    private static func holder(_ number: Int) -> UntakenShares.Holder { .init(loop: 0, number: number) }

    /// The value, for calls inside of expectations, and with numbers for connections.
    private final class Shares {
        private(set) var value: UntakenShares

        init(_ limits: UntakenShares.Limits = UntakenSharesTests.limits) { value = UntakenShares(limits) }

        @discardableResult
        func changed(_ number: Int, of client: String, to bytes: Int, at now: Int64 = 0) -> Bool {
            value.changed(UntakenSharesTests.holder(number), of: ClientAddress(client), to: bytes, at: now)
        }

        @discardableResult
        func review(at now: Int64) -> Bool { value.review(at: now) }
        func looked(_ number: Int, taken: Int, at now: Int64) {
            value.looked(at: UntakenSharesTests.holder(number), taken: taken, at: now)
        }
        func isStopped(_ client: String) -> Bool { value.isStopped(ClientAddress(client)) }
        var overdue: [Int] { value.overdue().map(\.number) }
        var stoppedCount: Int { value.stoppedCount }
        var bytes: Int { value.bytes }
    }

    // MARK: What is stopped

    @Test func aClientWithMoreThanItsPartIsStoppedUntilItHasTakenAQuarter() {
        let shares = Shares()
        #expect(!shares.changed(1, of: "a", to: 400) && !shares.isStopped("a"))
        #expect(shares.changed(2, of: "a", to: 1) && shares.isStopped("a"))
        #expect(shares.stoppedCount == 1 && !shares.isStopped("b"))
        #expect(!shares.changed(1, of: "a", to: 300) && shares.isStopped("a"))
        #expect(shares.changed(1, of: "a", to: 299) && !shares.isStopped("a"))
        #expect(shares.stoppedCount == 0 && shares.bytes == 300)
    }

    @Test func aClientThatHasTakenAllGoesOn() {
        let shares = Shares()
        shares.changed(1, of: "a", to: 900)
        #expect(shares.changed(1, of: "a", to: 0))
        #expect(!shares.isStopped("a") && shares.bytes == 0 && shares.stoppedCount == 0)
    }

    @Test func withTooManyBytesOnlyThoseWithMostAreStopped() {
        let shares = Shares()
        for (number, client) in ["a", "b", "c"].enumerated() { shares.changed(number, of: client, to: 320) }
        #expect(shares.stoppedCount == 0)
        // Three with 233 and one with 50 would leave 750.
        #expect(shares.changed(9, of: "d", to: 50))
        #expect(["a", "b", "c"].allSatisfy { shares.isStopped($0) } && !shares.isStopped("d"))
        #expect(!shares.isStopped("e"))
        // Only one that takes goes on, as long as there are too many.
        #expect(shares.changed(0, of: "a", to: 230) && !shares.isStopped("a"))
        #expect(shares.isStopped("b") && shares.isStopped("c"))
        #expect(shares.changed(1, of: "b", to: 160))
        // Three quarters end it.
        #expect(shares.changed(0, of: "a", to: 200))
        #expect(shares.stoppedCount == 0)
    }

    /// Clients with a byte each take nothing from the part of the others.
    @Test func manyClientsWithLittleStopNoneThatHasLittle() {
        let shares = Shares()
        for number in 0..<100 { shares.changed(number, of: "192.0.2.\(number)", to: 1) }
        for number in 100..<103 { shares.changed(number, of: "198.51.100.\(number)", to: 300) }
        shares.changed(200, of: "203.0.113.1", to: 100)
        #expect(shares.stoppedCount == 3 && !shares.isStopped("203.0.113.1") && !shares.isStopped("192.0.2.1"))
    }

    @Test func networksOfOneSiteAreBoundedTogether() {
        let shares = Shares()
        for number in 1...3 { shares.changed(number, of: "2001:db8:1:\(number)::1", to: 250) }
        #expect(shares.stoppedCount == 0)
        // A site is never all: three quarters.
        #expect(shares.changed(4, of: "2001:db8:1:4::1", to: 1) && shares.stoppedCount == 1)
        #expect(shares.isStopped("2001:db8:1:1::1") && shares.isStopped("2001:db8:1:ffff::1"))
        #expect(!shares.isStopped("2001:db8:2:1::1") && !shares.isStopped("192.0.2.1"))
        shares.changed(9, of: "192.0.2.1", to: 200)
        #expect(!shares.isStopped("192.0.2.1") && shares.bytes == 951)
        #expect(!shares.changed(1, of: "2001:db8:1:1::1", to: 100))
        #expect(shares.changed(2, of: "2001:db8:1:2::1", to: 200) && shares.stoppedCount == 0)
    }

    /// Further networks of a site do not lower what others may have.
    @Test func withTooManyBytesASiteIsOneCustomer() {
        let shares = Shares()
        for number in 1...4 { shares.changed(number, of: "2001:db8:1:\(number)::1", to: 180) }
        shares.changed(8, of: "192.0.2.1", to: 281)
        #expect(shares.isStopped("2001:db8:1:1::1") && !shares.isStopped("192.0.2.1"))
    }

    // MARK: What is closed

    /// One that reads nothing stops the others of its address for a second.
    @Test func theLargestConnectionsThatTakeNothingAreClosedSoon() {
        let shares = Shares()
        let sizes = [100, 20, 200, 90]
        for (number, bytes) in sizes.enumerated() { shares.changed(number, of: "a", to: bytes, at: 5) }
        #expect(shares.isStopped("a") && shares.overdue.isEmpty)
        for number in sizes.indices { shares.looked(number, taken: 7, at: 5) }
        for number in sizes.indices { shares.looked(number, taken: 7, at: 1_004) }
        #expect(shares.overdue.isEmpty)
        for number in sizes.indices { shares.looked(number, taken: number == 2 ? 8 : 7, at: 1_005) }
        // The largest one has taken something.
        #expect(shares.overdue == [0, 3])
        for number in sizes.indices { shares.looked(number, taken: number == 2 ? 8 : 7, at: 2_005) }
        #expect(shares.overdue == [2])
        #expect(shares.changed(2, of: "a", to: 0, at: 2_006) && shares.overdue.isEmpty)
    }

    @Test func aConnectionThatTakesALowRateIsKeptAndOneThatTakesLessIsNot() {
        let shares = Shares()
        for number in 1...3 { shares.changed(number, of: "a", to: 10_000) }
        for half in 0...120 {
            let time = Int64(half) * 500
            shares.looked(1, taken: half * 5, at: time)
            // The same rate, each second.
            shares.looked(2, taken: half / 2 * 10, at: time)
            // Always something, and too little.
            shares.looked(3, taken: half, at: time)
            #expect(shares.overdue == (half < 20 ? [] : [3]), "\(time)")
        }
    }

    /// Many of them together would keep their address stopped for as long as they like.
    @Test func aConnectionThatTakesLittleOfMuchIsClosed() {
        var limits = Self.limits
        limits.progress.drainMsMax = 30_000
        let shares = Shares(limits)
        // The rest must be taken in 30 seconds, and ten bytes a second are always needed.
        for (number, bytes) in [6_000, 6_000, 240].enumerated() { shares.changed(number, of: "a", to: bytes) }
        for second in 0...10 {
            let time = Int64(second) * 1_000
            shares.changed(0, of: "a", to: 6_000 - second * 150, at: time)
            shares.changed(1, of: "a", to: 6_000 - second * 149, at: time)
            shares.changed(2, of: "a", to: 240 - second * 10, at: time)
            for (number, rate) in [150, 149, 10].enumerated() { shares.looked(number, taken: second * rate, at: time) }
            #expect(shares.overdue == (second < 10 ? [] : [1]), "\(time)")
        }
    }

    /// Whatever the rates are: each connection that is kept has a quarter less after each ten seconds.
    @Test func aClientIsStoppedForAFewTimesTheTimeOfARate() {
        let limits = UntakenShares.Limits(
            bytesMax: 1 << 30, perClientMax: 400_000,
            progress: .init(stalledMsMax: 1_000, slowMsMax: 10_000, bytesPerSecondMin: 10, drainMsMax: 30_000))
        let failures = SeededShares.failures(200) { random in
            let shares = Shares(limits)
            var (held, taken): ([Int: Int], [Int: Int]) = ([:], [:])
            while held.values.reduce(0, +) <= 400_000 {
                held[held.count] = Int.random(in: 10_000...150_000, using: &random)
            }
            for (number, bytes) in held.sorted(by: { $0.key < $1.key }) { shares.changed(number, of: "a", to: bytes) }
            // A part of 300 is enough for a look.
            let parts = (0..<held.count).map { _ in [250, 320, 3_000, 30_000].randomElement(using: &random) ?? 1 }
            // In 50 seconds.
            for look in 0..<500 where shares.stoppedCount > 0 {
                let time = Int64(look) * 100
                for (number, bytes) in held.sorted(by: { $0.key < $1.key }) {
                    let count = min(bytes, bytes / parts[number] + 1)
                    held[number] = bytes == count ? nil : bytes - count
                    taken[number, default: 0] += count
                    shares.changed(number, of: "a", to: bytes - count, at: time)
                    if bytes > count { shares.looked(number, taken: taken[number, default: 0], at: time) }
                }
                shares.review(at: time)
                for number in shares.overdue {
                    held[number] = nil
                    shares.changed(number, of: "a", to: 0, at: time)
                }
                if time > 31_000 { return "still stopped with \(shares.bytes) after \(time) ms" }
            }
            return shares.stoppedCount == 0 ? nil : "\(shares.bytes) bytes stay"
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    @Test func whatWasTakenBeforeAClientWasStoppedDoesNotCount() {
        let shares = Shares()
        shares.changed(1, of: "a", to: 500)
        shares.looked(1, taken: 0, at: 0)
        shares.looked(1, taken: 0, at: 900)
        shares.changed(1, of: "a", to: 100, at: 950)
        shares.changed(1, of: "a", to: 500, at: 60_000)
        shares.looked(1, taken: 0, at: 60_000)
        #expect(shares.overdue.isEmpty)
        shares.looked(1, taken: 0, at: 61_000)
        #expect(shares.overdue == [1])
    }

    /// Between two looks, a client may go on and be stopped again.
    @Test func aConnectionThatWasOverdueBeforeIsLookedAtAnew() {
        let shares = Shares()
        shares.changed(1, of: "a", to: 500)
        for time in [Int64(0), 1_000] { shares.looked(1, taken: 0, at: time) }
        #expect(shares.overdue == [1])
        shares.changed(1, of: "a", to: 200, at: 1_050)
        #expect(!shares.isStopped("a"))
        shares.changed(1, of: "a", to: 500, at: 1_060)
        #expect(shares.isStopped("a") && shares.overdue.isEmpty)
        shares.looked(1, taken: 300, at: 1_100)
        shares.looked(1, taken: 350, at: 2_099)
        #expect(shares.overdue.isEmpty)
        shares.looked(1, taken: 350, at: 3_099)
        #expect(shares.overdue == [1])
    }

    @Test func connectionsOfClientsThatGoOnAreNotClosed() {
        let shares = Shares()
        shares.changed(1, of: "a", to: 300)
        shares.changed(2, of: "b", to: 500)
        for time in [Int64(0), 20_000] {
            for number in 1...2 { shares.looked(number, taken: 0, at: time) }
        }
        #expect(shares.overdue == [2])
    }

    @Test func withTooManyBytesOnlyTheClientsWithMostLoseConnections() {
        let shares = Shares()
        // 390, 360 and 340.
        for (number, bytes) in [195, 195, 180, 180, 170, 170].enumerated() {
            shares.changed(number, of: ["a", "b", "c"][number / 2], to: bytes)
        }
        #expect(shares.stoppedCount == 3)
        for time in [Int64(0), 1_000] {
            for number in 0..<6 { shares.looked(number, taken: 0, at: time) }
        }
        let closed = shares.overdue
        #expect(closed.count == 2 && closed.allSatisfy { $0 < 4 } && closed.contains { $0 < 2 })
        for number in closed { shares.changed(number, of: ["a", "b", "c"][number / 2], to: 0, at: 1_000) }
        #expect(shares.stoppedCount == 0 && shares.bytes <= 750)
    }

    @Test func theLargestConnectionsOfASiteAreClosed() {
        let shares = Shares()
        for number in 1...4 { shares.changed(number, of: "2001:db8:1:\(number)::1", to: 180 + number * 5) }
        for time in [Int64(0), 1_000] {
            for number in 1...4 { shares.looked(number, taken: 0, at: time) }
        }
        #expect(shares.overdue == [4, 3])
    }

    /// Whatever is taken and when, too many bytes always have a client that is stopped, and then, unless they are
    /// taken, a connection that is closed: nothing waits for ever.
    @Test func tooManyBytesNeverStayWithoutAnEnd() {
        let failures = SeededShares.failures(300) { random in
            let shares = Shares()
            var held: [Int: Int] = [:]
            var now: Int64 = 0
            func client(_ number: Int) -> String {
                number % 6 < 3 ? "192.0.2.\(number % 6)" : "2001:db8:\(number % 2):\(number % 6)::1"
            }
            func sums(_ name: (ClientAddress) -> String?) -> [String: Int] {
                held.reduce(into: [:]) { sums, entry in
                    if let name = name(ClientAddress(client(entry.key))) { sums[name, default: 0] += entry.value }
                }
            }
            for _ in 0..<60 {
                let number = Int.random(in: 0..<12, using: &random)
                held[number] = Bool.random(using: &random) ? 0 : Int.random(in: 0...300, using: &random)
                now += Int64.random(in: 0...3, using: &random)
                shares.changed(number, of: client(number), to: held[number] ?? 0, at: now)
                guard shares.bytes == held.values.reduce(0, +) else { return "the sum is wrong" }
                for (network, bytes) in sums(\.network) where bytes > 400 && !shares.isStopped(network) {
                    return "\(network) goes on with \(bytes)"
                }
                for (site, bytes) in sums(\.ownSite) where bytes > 750 && !shares.isStopped(site) {
                    return "\(site) goes on with \(bytes)"
                }
                if shares.bytes == 0 && shares.stoppedCount != 0 { return "stopped at 0" }
                if shares.bytes > 1_000 && shares.stoppedCount == 0 { return "none is stopped at \(shares.bytes)" }
            }
            for _ in 0..<4 {
                for time in [now, now + 1_000] {
                    for number in held.keys { shares.looked(number, taken: 0, at: time) }
                }
                now += 1_000
                for number in shares.overdue {
                    held[number] = 0
                    shares.changed(number, of: client(number), to: 0, at: now)
                }
                shares.review(at: now)
            }
            return shares.stoppedCount == 0 ? nil : "\(shares.bytes) bytes stay"
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

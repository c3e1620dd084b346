import Foundation
import HatoModel
import HatoTesting
import Testing

@testable import HatoAuth

/// Phones that refresh for two weeks: responses are lost, the phones are off for days, tabs refresh at once, widgets
/// have forks, and tokens are stolen. `HATO_PHONES=200` takes more phones, and `HATO_SEED=n` another history.
@Suite(.timeLimit(.minutes(30)))
struct PhoneHistoryTests {
    private static let phones = ProcessInfo.processInfo.environment["HATO_PHONES"].flatMap { Int($0) } ?? 20
    private static let days: Int64 = 14

    @Test func noSingleHolderIsSignedOutAndNoThiefStays() async throws {
        let bench = try await AuthBench.open()
        var random = SeededRandom(seed: SeededRandom.seed())
        var phones: [PhoneSession] = []
        for number in 0..<Self.phones {
            bench.pass(seconds: 60)
            let session = try await bench.anonymous()
            phones.append(PhoneSession(bench, session, mayBeStolen: number % 3 == 2))
            guard number % 3 == 1 else { continue }
            let fork = Auth.Sessions.Fork(refreshToken: session.refreshToken, label: "widget")
            let widget = try await bench.service.sessionList.fork(fork, CallOrigin())
            phones.append(PhoneSession(bench, widget, mayBeStolen: false))
        }
        let end = bench.now + Self.days * 86_400_000
        while let next = phones.indices.min(by: { phones[$0].nextAt < phones[$1].nextAt }), phones[next].nextAt < end {
            bench.pass(seconds: max(0, phones[next].nextAt - bench.now) / 1000)
            try await phones[next].act(&random)
        }
        for index in phones.indices { try await phones[index].endTheft(&random) }
        let all = phones.reduce(into: PhoneSession.Counts()) { $0.add($1.counts) }
        print("\(Self.phones) phones: \(all)")
        #expect(all.late > 0 && all.lost > 0 && all.fromTabs > 0 && all.thefts > 0)
        #expect(all.ended == all.thefts)
        #expect(all.phoneGenerations < 4)
    }
}

/// A session of a phone, and perhaps a thief that has a copy of its token. Times are in milliseconds.
private struct PhoneSession {
    struct Counts {
        var refreshes = 0
        var lost = 0
        /// Responses to repetitions after the window of 30 s.
        var late = 0
        var fromTabs = 0
        var thefts = 0
        /// Sessions that ended since two had their token.
        var ended = 0
        /// The most generations that a phone showed, after one that both showed, before a thief got a token.
        var phoneGenerations = 0
        /// The most that the thief showed so: while the phone is off, no token of it contradicts the thief's.
        var thiefGenerations = 0

        mutating func add(_ other: Counts) {
            refreshes += other.refreshes
            lost += other.lost
            late += other.late
            fromTabs += other.fromTabs
            thefts += other.thefts
            ended += other.ended
            phoneGenerations = max(phoneGenerations, other.phoneGenerations)
            thiefGenerations = max(thiefGenerations, other.thiefGenerations)
        }
    }

    private struct Holder {
        /// Of the token that it has.
        var generation = 0
        var nextAt: Int64
        /// Of a thief: it presents its token soon after the phone, so that both show generation after generation.
        var isClose = false
        /// When it presented its token first, if no response has come since.
        var lostAt: Int64?
        /// Generations in a row that it repeated late.
        var lateInARow = 0
        /// The generations that it has presented.
        var shown: Set<Int> = []
    }

    private static let day: Int64 = 86_400_000

    private let bench: AuthBench
    private var mayBeStolen: Bool
    private var chain: TokenChain
    /// The phone, and perhaps a thief.
    private var holders: [Holder]
    private var last: (holder: Int, at: Int64) = (0, 0)
    private(set) var counts = Counts()

    init(_ bench: AuthBench, _ session: Auth.Session, mayBeStolen: Bool) {
        self.bench = bench
        self.mayBeStolen = mayBeStolen
        chain = TokenChain(bench, session)
        holders = [Holder(nextAt: bench.now)]
    }

    var nextAt: Int64 { holders.map(\.nextAt).min() ?? .max }

    mutating func act(_ random: inout SeededRandom) async throws {
        let acting = holders.count == 2 && holders[1].nextAt < holders[0].nextAt ? 1 : 0
        // Two holders within 30 s are two tabs: here they are further apart.
        if holders.count == 2, last.holder != acting, bench.now - last.at <= 30_000 {
            holders[acting].nextAt = last.at + 31_000
            return
        }
        if !mayBeStolen, holders.count == 1, holders[0].lostAt == nil, chance(15, &random) {
            try await actAsTabs(&random)
        }
        try await present(by: acting, &random)
        if mayBeStolen, holders.count == 1, chance(5, &random) {
            counts.thefts += 1
            holders.append(Holder(generation: holders[0].generation, nextAt: bench.now + delay(&random)))
            holders[1].isClose = chance(50, &random)
            followPhone(1)
        }
    }

    /// While a thief is there, both go on, until the session has ended.
    mutating func endTheft(_ random: inout SeededRandom) async throws {
        mayBeStolen = false
        for _ in 0..<100 where holders.count == 2 {
            bench.pass(seconds: max(0, nextAt - bench.now) / 1000)
            try await act(&random)
        }
    }

    private func chance(_ percent: Int, _ random: inout SeededRandom) -> Bool {
        Int.random(in: 0..<100, using: &random) < percent
    }

    /// Seconds, hours, or days without a connection.
    private func delay(_ random: inout SeededRandom) -> Int64 {
        let range: ClosedRange<Int64> =
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3: 1...60
            case 3..<9: 1_800...14_400
            default: 86_400...4 * 86_400
            }
        return Int64.random(in: range, using: &random) * 1000
    }

    // MARK: One presentation

    private mutating func present(by acting: Int, _ random: inout SeededRandom) async throws {
        let now = bench.now
        let generation = holders[acting].generation
        counts.refreshes += 1
        holders[acting].shown.insert(generation)
        last = (acting, now)
        guard let next = try await chain.present(generation) else { return try await sessionEnded() }
        if acting == 1 { thiefGotAToken() }
        // A third late generation in a row would be two holders, and a response can come for seven days.
        let isLost = holders[acting].lateInARow < 2 && now - (holders[acting].lostAt ?? now) < Self.day
        if isLost, chance(30, &random) {
            counts.lost += 1
            holders[acting].lostAt = holders[acting].lostAt ?? now
        } else {
            let isLate = now - (holders[acting].lostAt ?? now) > 30_000
            counts.late += isLate ? 1 : 0
            holders[acting].lateInARow = isLate ? holders[acting].lateInARow + 1 : 0
            holders[acting].lostAt = nil
            holders[acting].generation = next
        }
        holders[acting].nextAt = now + delay(&random)
        followPhone(acting)
    }

    private mutating func followPhone(_ acting: Int) {
        guard acting == 1, holders[1].isClose else { return }
        holders[1].nextAt = max(holders[0].nextAt, bench.now) + 31_000
    }

    /// One tab refreshes several times, and another one presents the token of before within its window.
    private mutating func actAsTabs(_ random: inout SeededRandom) async throws {
        let first = holders[0].generation
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            guard let next = try await chain.present(holders[0].generation) else { return try await sessionEnded() }
            holders[0].generation = next
            bench.pass(seconds: Int64.random(in: 0...7, using: &random))
        }
        holders[0].lateInARow = 0
        counts.fromTabs += 1
        let newest = try await chain.present(first)
        #expect(newest == holders[0].generation)
    }

    private mutating func thiefGotAToken() {
        guard let first = holders[0].shown.intersection(holders[1].shown).min() else { return }
        counts.phoneGenerations = max(counts.phoneGenerations, holders[0].shown.count { $0 > first })
        counts.thiefGenerations = max(counts.thiefGenerations, holders[1].shown.count { $0 > first })
    }

    /// For all its holders. The phone signs in again.
    private mutating func sessionEnded() async throws {
        #expect(holders.count == 2, "a single holder was signed out")
        for holder in holders { #expect(try await chain.present(holder.generation) == nil) }
        counts.ended += 1
        chain = TokenChain(bench, try await bench.anonymous())
        holders = [Holder(nextAt: bench.now + 60_000)]
    }
}

/// The tokens of one session, by generation, and the whole history of their uses, from which follows what each of them
/// leads to.
private struct TokenChain {
    private let bench: AuthBench
    private var tokens: [String]
    private var uses: [Int64] = []
    private var late: Set<Int> = []
    private var isOver = false

    init(_ bench: AuthBench, _ session: Auth.Session) {
        self.bench = bench
        tokens = [session.refreshToken]
    }

    /// Presents a token, and returns the generation of the one in the response; nil: the session has ended.
    mutating func present(_ generation: Int) async throws -> Int? {
        let refusal = isOver ? "TOKEN_EXPIRED" : "INVALID_REFRESH_TOKEN"
        let expected = isOver ? nil : successor(of: generation, at: bench.now)
        if expected == nil { isOver = true }
        let token = tokens[generation]
        var response: Auth.Session?
        let error = await wireError { response = try await bench.refresh(token) }
        let history = "generation \(generation) at \(bench.now), uses: \(uses.suffix(10)), late: \(late.sorted())"
        guard let expected, let response else {
            #expect(expected == nil && response == nil && error?.reason == refusal, "\(history)")
            return nil
        }
        if expected == tokens.count { tokens.append(response.refreshToken) }
        #expect(tokens[expected] == response.refreshToken, "\(history)")
        return expected
    }

    private mutating func successor(of generation: Int, at now: Int64) -> Int? {
        guard generation < uses.count else {
            uses.append(now)
            return uses.count
        }
        let age = now - uses[generation]
        if age <= 30_000, uses.count - generation <= 8 { return uses.count }
        guard generation == uses.count - 1, age <= 7 * 86_400_000 else { return nil }
        late.insert(generation)
        return late.isSuperset(of: [generation - 2, generation - 1, generation]) ? nil : generation + 1
    }
}

import HatoTesting
import Testing

@testable import HatoRPC

/// Which lines and requests go on, and what it costs to find them among many that wait.
struct WaitingTests {
    // MARK: Lines

    /// Claims with what is held of them, and a list of those that the rules allow.
    private struct Lines {
        let linesMax: Int
        let clientMax: Int
        var claims: LineClaims
        var held: [String: Int] = [:]
        var granted: [UInt64: Int] = [:]
        var waiting: [UInt64: (client: String, capacity: Int)] = [:]
        var clients: [UInt64: String] = [:]
        var order: [UInt64] = []
        var refused: [UInt64] = []
        var looks = 0

        init(linesMax: Int, clientMax: Int, reserved: Int = 0, forCapacity capacityMax: Int = 0) {
            self.linesMax = linesMax
            self.clientMax = clientMax
            claims = LineClaims(
                linesMax: linesMax, clientMax: clientMax, reserved: reserved, forCapacity: capacityMax)
        }

        var used: Int { held.values.reduce(0, +) }

        mutating func claim(_ capacity: Int, by connection: UInt64, of client: String) {
            guard !claims.claimed(capacity, by: connection, of: client) else { return }
            clients[connection] = client
            waiting[connection] = (client, capacity)
            offer()
        }

        mutating func offer() {
            while let decision = next() {
                switch decision {
                case .grant(let grant):
                    held[grant.client, default: 0] += grant.growth
                    granted[grant.connection, default: 0] += grant.growth
                    waiting[grant.connection] = nil
                    order.append(grant.connection)
                case .refuse(let connection): refused.append(connection)
                }
            }
        }

        private mutating func next() -> LineClaims.Decision? {
            var looks = looks
            let held = held
            let decision = claims.next(
                .init(used: used) {
                    looks += 1
                    return held[$0] ?? 0
                })
            self.looks = looks
            return decision
        }

        mutating func end(_ connection: UInt64, isComplete: Bool = true) {
            let bytes = claims.ended(connection, isComplete: isComplete)
            held[clients[connection] ?? "", default: 0] -= bytes
            granted[connection] = nil
            waiting[connection] = nil
            claims.heldChanged(clients[connection] ?? "")
            offer()
        }

        mutating func isOverdue(_ connection: UInt64) {
            claims.isOverdue(connection)
            offer()
        }

        mutating func completed(_ connection: UInt64) {
            claims.completed(connection)
            offer()
        }

        mutating func add(_ bytes: Int, to client: String) {
            held[client, default: 0] += bytes
            if bytes < 0 { claims.heldChanged(client) }
            offer()
        }

        /// Whether one of the lines that wait is within its client's share, and leaves as much free as the client has.
        var oneFits: Bool {
            waiting.contains { connection, claim in
                let own = (held[claim.client] ?? 0) + claim.capacity - (granted[connection] ?? 0)
                return own <= clientMax && own + claim.capacity - (granted[connection] ?? 0) <= linesMax - used
            }
        }
    }

    @Test func whatIsGivenBackLooksAtNoLineButThoseThatGoOn() {
        var lines = Lines(linesMax: 1_000, clientMax: 500)
        lines.held["filler"] = 1_000
        for id in 1...10_000 as ClosedRange<UInt64> { lines.claim(10, by: id, of: "user\(id % 5_000)") }
        #expect(lines.order == [1], "one line goes on where nothing fits")
        lines.looks = 0
        lines.add(-10, to: "filler")
        #expect(lines.looks <= 2)
        lines.looks = 0
        lines.add(-100, to: "filler")
        let count = lines.order.count - 1
        #expect(count > 0 && count < 12)
        #expect(lines.looks <= 10 * (count + 2))
        lines.looks = 0
        lines.end(1)
        #expect(lines.looks <= 20)
        #expect(lines.claims.isAwaited(2, of: "user2"))
        #expect(lines.claims.isAwaited(20_000, of: "filler"))
    }

    @Test func linesOfAClientThatHoldsMuchWaitAndOthersGoOn() {
        var lines = Lines(linesMax: 1_000, clientMax: 300)
        lines.add(290, to: "mallory")
        lines.claim(100, by: 1, of: "mallory")
        #expect(lines.order == [1], "one beyond the share")
        lines.claim(100, by: 2, of: "mallory")
        lines.claim(100, by: 3, of: "anna")
        #expect(lines.order == [1, 3])
        #expect(lines.claims.isAwaited(1, of: "mallory") && !lines.claims.isAwaited(3, of: "anna"))
        lines.claim(200, by: 1, of: "mallory")
        #expect(
            lines.order == [1, 3, 2], "nothing fits: the first of the client that holds the least of those that wait")
        lines.add(-290, to: "mallory")
        #expect(lines.order == [1, 3, 2, 1])
        for id in [1, 2, 3] as [UInt64] { lines.end(id) }
        #expect(lines.used == 0)
    }

    /// Lines of `count` clients that wait where nothing fits, while others are read elsewhere.
    private static func full(of count: UInt64) -> Lines {
        var lines = Lines(linesMax: 1_000, clientMax: 2_000, reserved: 80, forCapacity: 20)
        lines.add(2_000, to: "filler")
        lines.claims.chargeBegan(of: "filler")
        for id in 1...count { lines.claim(10, by: id, of: "many\(id)") }
        return lines
    }

    @Test func mediumLinesAreNotHeldUpByLongOnes() {
        var lines = Self.full(of: 100)
        #expect(lines.order == [1, 2, 3, 4], "a few, in their order, however much is held")
        #expect(lines.granted[1] == 20, "with all that a medium line may need")
        #expect(lines.claims.exemption(of: 1) == .medium)
        #expect(lines.refused == [])
        // They become long: each leaves its memory to the next client, until all lines have become long.
        for id in 1...100 as ClosedRange<UInt64> {
            #expect(lines.order.contains(id))
            lines.claim(40, by: id, of: "many\(id)")
            for refused in lines.refused.dropFirst(lines.refused.count - 1) { lines.end(refused, isComplete: false) }
        }
        #expect(lines.order.count == 100 && lines.refused.count == 96)
        #expect(lines.used == 2_000 + 4 * 20)
        let last = lines.order.filter { lines.granted[$0] != nil }
        // Their clients are known now: they have none refused.
        for id in 1...10 as ClosedRange<UInt64> { lines.claim(10, by: 200 + id, of: "many\(id)") }
        #expect(lines.order.count == 100 && lines.refused.count == 96)
        lines.claim(10, by: 300, of: "anna")
        #expect(lines.refused.suffix(1) == [100] && lines.order.count == 100)
        lines.claim(10, by: 301, of: "bob")
        #expect(lines.refused.count == 97, "one at a time")
        lines.end(100, isComplete: false)
        #expect(lines.order.last == 300 && lines.refused.suffix(1) == [99])
        lines.add(-2_000, to: "filler")
        let kept = last.filter { !lines.refused.contains($0) }
        #expect(kept.count == 2 && Set(kept).isSubset(of: lines.order.dropFirst(101)), "what was not refused goes on")
    }

    @Test func clientsWhoseLinesBecameLongWaitForTheOthers() {
        var lines = Self.full(of: 4)
        for id in 1...4 as ClosedRange<UInt64> { lines.claim(10, by: 10 + id, of: "many\(id)") }
        lines.claim(10, by: 20, of: "anna")
        #expect(lines.order == [1, 2, 3, 4], "one of each client at a time")
        lines.end(1, isComplete: false)
        #expect(lines.order == [1, 2, 3, 4, 20])
        lines.claim(10, by: 21, of: "bob")
        lines.end(2, isComplete: false)
        #expect(lines.order == [1, 2, 3, 4, 20, 21], "before those that did not come to their ends")
        lines.end(3)
        #expect(lines.order == [1, 2, 3, 4, 20, 21, 13], "one that did is before these")
        lines.end(20)
        lines.end(21)
        #expect(lines.order.suffix(2) == [11, 12])
        // They come to their ends now.
        for id in [4, 11, 12, 13, 14] as [UInt64] { lines.end(id) }
        #expect(lines.used == 2_000)
        for id in 31...34 as ClosedRange<UInt64> { lines.claim(10, by: id, of: "new\(id)") }
        lines.claim(10, by: 35, of: "new35")
        lines.claim(10, by: 36, of: "many1")
        lines.claim(10, by: 37, of: "many2")
        lines.end(31)
        lines.end(32)
        #expect(
            Set(lines.order.suffix(2)) == [35, 36],
            "those whose last line came to its end, and those that waited longest")
    }

    @Test func linesThatComeSlowlyLeaveTheirMemoryToOthers() {
        var lines = Self.full(of: 4)
        lines.claim(10, by: 20, of: "anna")
        #expect(lines.refused == [], "they may still come quickly")
        lines.isOverdue(2)
        lines.isOverdue(2)
        lines.isOverdue(3)
        #expect(lines.refused == [2], "one at a time")
        lines.end(2, isComplete: false)
        #expect(lines.order.last == 20 && lines.refused == [2], "none waits")
    }

    /// It would be asked to end in vain, and no other line with it.
    @Test func lineThatIsCompleteShieldsNoOtherThatComesSlowly() {
        for isAsked in [true, false] {
            var lines = Self.full(of: 4)
            lines.isOverdue(1)
            lines.isOverdue(2)
            if isAsked { lines.claim(10, by: 20, of: "anna") }
            #expect(lines.refused == (isAsked ? [2] : []))
            lines.completed(2)
            if !isAsked { lines.claim(10, by: 20, of: "anna") }
            #expect(lines.refused.last == 1)
            lines.end(1, isComplete: false)
            #expect(lines.order.last == 20)
        }
    }

    @Test func aClientWithAnOverdueLineIsLastUntilSomeHaveComeQuickly() {
        var lines = Self.full(of: 4)
        lines.isOverdue(1)
        lines.end(1)
        for round in 0..<10 as Range<UInt64> {
            let (taken, late, other) = (100 + round, 200 + round, 300 + round)
            lines.claim(10, by: taken, of: "taken\(round)")
            lines.claim(10, by: late, of: "many1")
            lines.claim(10, by: other, of: "other\(round)")
            lines.end(taken)
            for id in round < 8 ? [other, late] : [late, other] {
                #expect(lines.granted[id] != nil)
                lines.end(id)
            }
        }
    }

    @Test func aClientBeyondItsShareFindsNoMemoryOfMediumLines() {
        var lines = Lines(linesMax: 1_000, clientMax: 100, reserved: 80, forCapacity: 20)
        lines.add(2_000, to: "filler")
        lines.claims.chargeBegan(of: "mallory")
        lines.add(90, to: "mallory")
        lines.claim(10, by: 1, of: "mallory")
        #expect(lines.order == [])
        lines.add(-10, to: "mallory")
        #expect(lines.order == [1])
    }

    @Test func whatTheLineTakesThatGoesOnWhereNothingFitsIsNotTakenFromOthers() {
        var lines = Lines(linesMax: 1_000, clientMax: 2_000)
        lines.add(1_000, to: "filler")
        lines.claim(400, by: 1, of: "mallory")
        lines.claim(800, by: 1, of: "mallory")
        lines.claim(50, by: 2, of: "anna")
        #expect(lines.order == [1, 1])
        lines.add(-100, to: "filler")
        #expect(lines.order == [1, 1, 2])
        lines.end(1)
        lines.claim(30, by: 3, of: "bob")
        #expect(lines.order == [1, 1, 2, 3], "nothing fits again, and the one that went on has ended")
    }

    @Test func lineThatGoesOnWhereNothingFitsMayGrowToItsEnd() {
        var lines = Lines(linesMax: 100, clientMax: 50)
        lines.held["filler"] = 100
        for capacity in [10, 20, 40, 80] { lines.claim(capacity, by: 1, of: "anna") }
        #expect(lines.order == [1, 1, 1, 1])
        #expect(lines.claims.exemption(of: 1) == .one)
        lines.claim(10, by: 2, of: "bea")
        #expect(lines.order.last == 1)
        lines.end(1)
        #expect(lines.order.last == 2)
    }

    @Test func noExceptionIsMadeWhileLinesAreReadElsewhere() {
        var lines = Lines(linesMax: 100, clientMax: 50)
        lines.held["mallory"] = 100
        lines.claims.chargeBegan(of: "mallory")
        lines.claim(10, by: 1, of: "anna")
        lines.claim(10, by: 2, of: "mallory")
        #expect(lines.order == [])
        lines.claims.chargeEnded(of: "mallory")
        lines.offer()
        #expect(lines.order == [1])
    }

    @Test func everyLineThatFitsGoesOnWhateverHappens() {
        var random = SeededRandom(seed: SeededRandom.seed())
        for _ in 0..<200 {
            var lines = Lines(
                linesMax: Int.random(in: 50...500, using: &random), clientMax: Int.random(in: 10...200, using: &random))
            for _ in 0..<200 {
                let id = UInt64.random(in: 0..<12, using: &random)
                let client = "client\(id % 4)"
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    guard lines.waiting[id] == nil else { continue }
                    lines.claim((lines.granted[id] ?? 0) + Int.random(in: 1...60, using: &random), by: id, of: client)
                case 2: lines.end(id)
                case 3: lines.add(Int.random(in: 1...40, using: &random), to: client)
                default:
                    let spare =
                        (lines.held[client] ?? 0)
                        - lines.granted.filter { $0.key % 4 == id % 4 }
                        .values.reduce(0, +)
                    if spare > 0 { lines.add(-Int.random(in: 1...spare, using: &random), to: client) }
                }
                #expect(!lines.oneFits)
                #expect(lines.claims.waitingCount == lines.waiting.count)
            }
            // When lines come to their end, each of those that wait goes on.
            for _ in 0..<50 where !lines.waiting.isEmpty {
                for id in lines.granted.keys.sorted() where lines.waiting[id] == nil { lines.end(id) }
                if let holder = lines.granted.keys.sorted().first, lines.waiting.count == lines.granted.count {
                    lines.end(holder)
                }
            }
            #expect(lines.waiting.isEmpty)
        }
    }
}

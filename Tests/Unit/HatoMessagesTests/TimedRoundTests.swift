import Testing

@testable import HatoMessages

/// Rights that depend on the time are evaluated every second; those of one client get a share of the time.
@Suite struct TimedRoundTests {
    private func evaluated(_ round: inout TimedRound, _ ids: [UInt64], of client: (UInt64) -> String) -> [UInt64] {
        var evaluated: [UInt64] = []
        round.begin(ids)
        while let id = round.takeFirst() {
            guard round.admits(id, of: client(id), max: .milliseconds(50)) else { continue }
            round.evaluated(of: client(id), in: .milliseconds(20))
            evaluated.append(id)
        }
        #expect(round.isOver)
        return evaluated
    }

    @Test func aClientGetsItsShareAndTheRestComesFirstInTheNextRound() {
        var round = TimedRound()
        let client = { (id: UInt64) in id <= 7 ? "many" : "few" }
        #expect(evaluated(&round, Array(1...9), of: client) == [1, 2, 3, 8, 9])
        #expect(evaluated(&round, Array(1...9), of: client) == [4, 5, 6, 8, 9])
        // One has ended, one is new.
        #expect(evaluated(&round, Array(1...6) + [8, 9, 10], of: client) == [1, 2, 3, 8, 9, 10])
    }
}

import HatoTesting
import Synchronization
import Testing

@testable import HatoMessages

/// Responses of writes that wait for events are sent in order, as soon as all listeners that they wait for are far
/// enough.
@Suite struct DelayedResponsesTests {
    @Test func responsesLeaveWhenTheLeastVersionReachesThem() {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        var held = DelayedResponses()
        var sent: [UInt64: UInt64] = [:]
        var waiting: [UInt64] = []
        var version: UInt64 = 0
        var released = 0
        let left = Mutex<[UInt64]>([])
        for _ in 0..<3_000 {
            let id = UInt64.random(in: 1...6, using: &random)
            var expected: [UInt64] = []
            switch random.pick([0, 1, 1, 2, 2, 3]) {
            case 0:
                sent[id] = version
                held.wait(1, for: id, after: version)
            case 1:
                version += 1
                let now = version
                let isKept = held.keep({ left.withLock { $0.append(now) } }, of: now, to: 1)
                #expect(isKept == (sent.values.min() ?? .max < now), "seed \(seed)")
                if isKept { waiting.append(now) }
            default:
                let through = random.chance(1, in: 2) ? nil : version
                for answer in held.sent(1, by: id, through: through) { answer() }
                guard sent[id] != nil else { break }
                sent[id] = through
                let limit = sent.values.min() ?? .max
                expected = waiting.filter { $0 <= limit }
                waiting.removeAll { $0 <= limit }
            }
            let answered = left.withLock { left in
                defer { left = [] }
                return left
            }
            #expect(answered == expected, "seed \(seed)")
            released += answered.count
            #expect(held.hasResponses(to: 1) == !waiting.isEmpty, "seed \(seed)")
        }
        #expect(released > 100, "seed \(seed)")
    }
}

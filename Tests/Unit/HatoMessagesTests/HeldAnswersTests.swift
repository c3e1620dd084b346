import HatoTesting
import Synchronization
import Testing

@testable import HatoMessages

/// Answers of writes that wait for events leave in order, as soon as everybody they wait for is far enough.
@Suite struct HeldAnswersTests {
    @Test func answersLeaveWhenTheLeastVersionReachesThem() {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        var held = HeldAnswers()
        var told: [UInt64: UInt64] = [:]
        var waiting: [UInt64] = []
        var version: UInt64 = 0
        var released = 0
        let left = Mutex<[UInt64]>([])
        for _ in 0..<3_000 {
            let id = UInt64.random(in: 1...6, using: &random)
            var expected: [UInt64] = []
            switch random.pick([0, 1, 1, 2, 2, 3]) {
            case 0:
                told[id] = version
                held.wait(1, for: id, after: version)
            case 1:
                version += 1
                let now = version
                let isKept = held.keep({ left.withLock { $0.append(now) } }, of: now, to: 1)
                #expect(isKept == (told.values.min() ?? .max < now), "seed \(seed)")
                if isKept { waiting.append(now) }
            default:
                let through = random.chance(1, in: 2) ? nil : version
                for answer in held.told(1, by: id, through: through) { answer() }
                guard told[id] != nil else { break }
                told[id] = through
                let limit = told.values.min() ?? .max
                expected = waiting.filter { $0 <= limit }
                waiting.removeAll { $0 <= limit }
            }
            let answered = left.withLock { left in
                defer { left = [] }
                return left
            }
            #expect(answered == expected, "seed \(seed)")
            released += answered.count
            #expect(held.hasAnswers(to: 1) == !waiting.isEmpty, "seed \(seed)")
        }
        #expect(released > 100, "seed \(seed)")
    }
}

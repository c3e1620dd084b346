import HatoTesting
import Testing

@testable import HatoRPC

@Suite(.timeLimit(.minutes(10))) struct IndexedHeapTests {
    /// Against a dictionary that is searched.
    @Test func theFirstIsTheLeastWhateverIsInsertedReplacedAndRemoved() {
        var random = SeededRandom(seed: 7)
        var heap = IndexedHeap<Int, Int>()
        var model: [Int: Int] = [:]
        for _ in 0..<20_000 {
            let (key, priority) = (Int.random(in: 0..<64, using: &random), Int.random(in: 0..<1_000, using: &random))
            if Int.random(in: 0..<4, using: &random) == 0 {
                heap.remove(key)
                model[key] = nil
            } else {
                heap.insert(key, priority)
                model[key] = priority
            }
            #expect(heap.count == model.count)
            #expect(heap.first?.priority == model.values.min())
            #expect(heap.first.map { model[$0.key] } == heap.first.map(\.priority))
            #expect(heap.priority(of: key) == model[key])
        }
    }
}

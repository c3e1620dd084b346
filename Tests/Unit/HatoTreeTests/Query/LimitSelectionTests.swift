import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct LimitSelectionTests {
    private func sortKey(_ text: String, _ number: Int) -> SortKey {
        SortKey(.leaf(.string(text)), TreeKey(unchecked: "k\(number)"))
    }

    @Test func theWantedOnesAreThoseOfAWholeSort() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for round in 0..<6 {
            // Many short texts in one round, in the next one long ones.
            let (number, bytes) = round.isMultiple(of: 2) ? (1_500, 0) : (150, 40_000)
            let all = (0..<number).map {
                sortKey("\(Int.random(in: 0..<300, using: &random))" + String(repeating: "x", count: bytes), $0)
            }
            let count = Int.random(in: 0..<40, using: &random)
            for limit in [TreeQuery.Limit.first(count), .last(count), nil] {
                var sortKeys = LimitSelection(limit, bytesMax: .max)
                for sortKey in all { try sortKeys.add(sortKey) }
                let sorted = all.sorted()
                let expected =
                    switch limit {
                    case nil: sorted
                    case .first: Array(sorted.prefix(count))
                    case .last: Array(sorted.suffix(count))
                    }
                #expect(try sortKeys.inOrder() == expected, "seed \(seed)")
            }
        }
    }

    @Test func longTextsAreDroppedBeforeTheirNumberIsReached() throws {
        let text = String(repeating: "x", count: 100_000)
        var sortKeys = LimitSelection(.first(1), bytesMax: 1 << 20)
        for number in 0..<500 {
            try sortKeys.add(sortKey(text + "\(number)", number))
            #expect(sortKeys.sortKeys.count <= 12)
        }
        #expect(try sortKeys.inOrder().count == 1)
    }

    @Test func wantedOnesBeyondTheBytesAreRefused() throws {
        let text = String(repeating: "x", count: 100_000)
        var sortKeys = LimitSelection(.first(20), bytesMax: 1 << 20)
        #expect(throws: TreeError.self) {
            for number in 0..<500 {
                try sortKeys.add(sortKey(text, number))
                #expect(sortKeys.sortKeys.count <= 12)
            }
        }
        var few = LimitSelection(nil, bytesMax: 10)
        #expect(throws: TreeError.self) { try few.add(sortKey(text, 1)) }
    }
}

import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct LimitSelectionTests {
    private func place(_ text: String, _ number: Int) -> SortKey {
        SortKey(.leaf(.string(text)), TreeKey(unchecked: "k\(number)"))
    }

    @Test func theWantedOnesAreThoseOfAWholeSort() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for round in 0..<6 {
            // Many short texts in one round, in the next one long ones.
            let (number, bytes) = round.isMultiple(of: 2) ? (1_500, 0) : (150, 40_000)
            let all = (0..<number).map {
                place("\(Int.random(in: 0..<300, using: &random))" + String(repeating: "x", count: bytes), $0)
            }
            let count = Int.random(in: 0..<40, using: &random)
            for limit in [TreeQuery.Limit.first(count), .last(count), nil] {
                var places = LimitSelection(limit, bytesMax: .max)
                for place in all { try places.add(place) }
                let sorted = all.sorted()
                let expected =
                    switch limit {
                    case nil: sorted
                    case .first: Array(sorted.prefix(count))
                    case .last: Array(sorted.suffix(count))
                    }
                #expect(try places.inOrder() == expected, "seed \(seed)")
            }
        }
    }

    @Test func longTextsAreDroppedBeforeTheirNumberIsReached() throws {
        let text = String(repeating: "x", count: 100_000)
        var places = LimitSelection(.first(1), bytesMax: 1 << 20)
        for number in 0..<500 {
            try places.add(place(text + "\(number)", number))
            #expect(places.places.count <= 12)
        }
        #expect(try places.inOrder().count == 1)
    }

    @Test func wantedOnesBeyondTheBytesAreRefused() throws {
        let text = String(repeating: "x", count: 100_000)
        var places = LimitSelection(.first(20), bytesMax: 1 << 20)
        #expect(throws: TreeError.self) {
            for number in 0..<500 {
                try places.add(place(text, number))
                #expect(places.places.count <= 12)
            }
        }
        var few = LimitSelection(nil, bytesMax: 10)
        #expect(throws: TreeError.self) { try few.add(place(text, 1)) }
    }
}

import HatoModel
import Testing

struct PushKeyTests {
    @Test func keysGrowWithinAMillisecondAndWhenTheClockStepsBack() {
        var generator = PushKeyGenerator()
        var random = SystemRandomNumberGenerator()
        var last: PushKey?
        for now: Int64 in [5, 5, 5, 6, 6, 4, 4, 7, 1_700_000_000_000, 1_699_999_999_999] {
            for _ in 0..<50 {
                let key = generator.next(now: now, using: &random)
                if let last { #expect(last < key) }
                #expect(key.text.utf8.count == 20)
                last = key
            }
        }
        #expect(last?.milliseconds == 1_700_000_000_000)
    }

    @Test func incrementCarriesThroughTheRandomPart() {
        struct Ones: RandomNumberGenerator {
            func next() -> UInt64 { .max }
        }
        var generator = PushKeyGenerator()
        var random = Ones()
        #expect(generator.next(now: 1, using: &random).text == "-------0zzzzzzzzzzzz")
        // The counter is exhausted: the next millisecond is used.
        #expect(generator.next(now: 1, using: &random).text == "-------1zzzzzzzzzzzz")
        #expect(PushKey(milliseconds: 1, random: (0, (1 << 36) - 1)).text == "-------0------zzzzzz")
    }

    @Test func withinAMillisecondKeysCountUpByOne() {
        struct Scripted: RandomNumberGenerator {
            var numbers: [UInt64]
            mutating func next() -> UInt64 { numbers.isEmpty ? 0 : numbers.removeFirst() }
        }
        func firstTwo(_ numbers: [UInt64]) -> [String] {
            var (generator, random) = (PushKeyGenerator(), Scripted(numbers: numbers))
            return (0..<2).map { _ in generator.next(now: 1, using: &random).text }
        }
        #expect(firstTwo([0, 0]) == ["-------0------------", "-------0-----------0"])
        #expect(firstTwo([0, 63]) == ["-------0-----------z", "-------0----------0-"])
        #expect(firstTwo([0, .max]) == ["-------0------zzzzzz", "-------0-----0------"])
    }

    @Test func sameTimeAndBitsMakeTheSameKey() throws {
        let key = PushKey(milliseconds: 1_700_000_000_000, random: (7, 9))
        #expect(key == PushKey(milliseconds: 1_700_000_000_000, random: (7, 9)))
        #expect(key != PushKey(milliseconds: 1_700_000_000_000, random: (7, 8)))
        #expect(key.milliseconds == 1_700_000_000_000)
        #expect(try PushKey(key.text) == key)
    }

    @Test func textsThatAreNoPushKeyAreRefused() {
        for text in ["", "-NjEtLV-", "-NjEtLV-0000000000+0", "-NjEtLV-00000000000é", "-NjEtLV-0000000000000"] {
            #expect(throws: ArgumentError.self) { try PushKey(text) }
        }
    }
}

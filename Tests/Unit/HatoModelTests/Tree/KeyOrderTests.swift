import HatoModel
import Testing

struct KeyOrderTests {
    @Test func sentinelsSortBeforeAndAfterEverything() {
        for key in ["", "-2147483648", "0", "\u{10FFFF}", "[", "[MIN", "[MIN_NAME", "\u{FFFF}"] {
            #expect(KeyOrder.compare(KeyOrder.minName, key) < 0, "\(key)")
            #expect(KeyOrder.compare(key, KeyOrder.maxName) < 0, "\(key)")
        }
        #expect(KeyOrder.compare(KeyOrder.minName, KeyOrder.minName) == 0)
        #expect(KeyOrder.compare(KeyOrder.minName, KeyOrder.maxName) < 0)
    }

    @Test func supplementaryCharactersComeBeforeTheEndOfTheBasicPlane() {
        #expect(KeyOrder.precedes("\u{D7FF}", "😀"))
        #expect(KeyOrder.precedes("😀", "\u{E000}"))
        #expect(KeyOrder.precedes("\u{10FFFF}", "\u{FFFD}"))
        #expect(KeyOrder.precedes("a\u{10000}", "a\u{10001}"))
    }

    @Test func orderOfTextsIsThatOfTheirUTF16Units() {
        let texts = [
            "", "a", "aa", "b", "é", "e\u{301}", "\u{D7FF}", "\u{10000}", "😀", "😀a", "\u{10FFFF}", "\u{E000}",
            "\u{FFFF}", "鳩",
        ]
        for left in texts {
            for right in texts {
                let expected =
                    Array(left.utf16) == Array(right.utf16)
                    ? 0 : left.utf16.lexicographicallyPrecedes(right.utf16) ? -1 : 1
                #expect(UTF16Order.compare(left, right).signum() == expected, "\(left) and \(right)")
            }
        }
    }

    @Test func integersAreDigitsWithinTheRangeOf32Bits() {
        #expect(KeyOrder.integer("2147483647") == 2_147_483_647)
        #expect(KeyOrder.integer("-2147483648") == -2_147_483_648)
        #expect(KeyOrder.integer("0000000000000007") == 7)
        #expect(KeyOrder.integer("-0") == 0)
        for text in ["2147483648", "-2147483649", "", "-", "+1", "1.0", "1a", "--1", "٣", "99999999999999999999999"] {
            #expect(KeyOrder.integer(text) == nil, "\(text)")
        }
    }

    @Test func arrayIndexesHaveOneSpelling() {
        #expect(KeyOrder.arrayIndex("0") == 0)
        #expect(KeyOrder.arrayIndex("10") == 10)
        for text in ["00", "01", "-1", "-0", "", "a", "2147483648"] {
            #expect(KeyOrder.arrayIndex(text) == nil, "\(text)")
        }
    }
}

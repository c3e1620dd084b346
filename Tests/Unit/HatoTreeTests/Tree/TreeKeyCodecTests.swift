import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

struct TreeKeyCodecTests {
    @Test func bytesAreOrderedAsKeysAre() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let keys = (0..<3000).map { _ in RandomKeys.key(&random) }
        let encoded = keys.map { key in
            var bytes: [UInt8] = []
            TreeKeyCodec.append(key, to: &bytes)
            return bytes
        }
        for _ in 0..<60_000 {
            let (left, right) = (
                Int.random(in: 0..<keys.count, using: &random), Int.random(in: 0..<keys.count, using: &random)
            )
            let byKey = KeyOrder.compare(keys[left].text, keys[right].text).signum()
            let byBytes =
                encoded[left] == encoded[right] ? 0 : encoded[left].lexicographicallyPrecedes(encoded[right]) ? -1 : 1
            #expect(byKey == byBytes, "\(keys[left]) and \(keys[right]), seed \(seed)")
        }
        for (key, bytes) in zip(keys, encoded) {
            #expect(TreeKeyCodec.decode(bytes.span) == key, "\(key), seed \(seed)")
            #expect(
                TreeKeyCodec.endOfKey(in: (bytes + [9, 0, 9]).span, from: 0) == bytes.count, "\(key), seed \(seed)")
        }
    }

    @Test func pathsAreReadBack() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let codec = TreeKeyCodec(prefix: Array("db".utf8))
        for _ in 0..<2000 {
            let keys = (0..<Int.random(in: 0...6, using: &random)).map { _ in RandomKeys.key(&random) }
            let path = try TreePath(TreePath(keys: keys).text + (Bool.random(using: &random) ? "/.priority" : ""))
            #expect(codec.path(of: codec.key(of: path).span) == path, "\(path), seed \(seed)")
        }
    }

    @Test func rowsBelowAPathAndNoOthersBeginWithItsKey() throws {
        let codec = TreeKeyCodec(prefix: [1])
        let chat = codec.key(of: try TreePath("/chats/c1"))
        for below in ["/chats/c1", "/chats/c1/.priority", "/chats/c1/messages", "/chats/c1/1/2"] {
            #expect(codec.key(of: try TreePath(below)).starts(with: chat), "\(below)")
        }
        for beside in ["/chats/c10", "/chats/c1-", "/chats", "/chats/c", "/chats/1", "/c1", "/chats/.priority"] {
            #expect(!codec.key(of: try TreePath(beside)).starts(with: chat), "\(beside)")
        }
    }

    @Test func aNodeIsFollowedByItsPriorityThenIntegersThenOtherKeys() throws {
        let codec = TreeKeyCodec(prefix: [1])
        let paths = [
            "/", "/.priority", "/-5", "/0", "/00", "/7", "/7/.priority", "/7/a", "/70", "/ ", "/a", "/a/.priority",
            "/a/1", "/a/a", "/a!",
        ]
        let rows = try paths.map { codec.key(of: try TreePath($0)) }
        #expect(rows == rows.sorted { $0.lexicographicallyPrecedes($1) })
    }

    @Test func foreignBytesAreNoPath() {
        let codec = TreeKeyCodec(prefix: [1])
        for row: [UInt8] in [[], [1, 97], [1, 2, 0x80], [1, 1, 1], [1, 2, 0x80, 0, 0, 1, 0x81]] {
            #expect(codec.path(of: row.span) == nil, "\(row)")
        }
    }
}

/// Keys of all kinds, many of them close to each other.
enum RandomKeys {
    private static let pieces = [
        "0", "1", "9", "-", "2147483647", "2147483648", "a", "b", "A", "_", "~", " ", "é", "e\u{301}", "\u{80}",
        "\u{D7FF}",
        "\u{E000}", "\u{FFFD}", "\u{10000}", "😀", "\u{10FFFF}", "鳩",
    ]

    static func key(_ random: inout SeededRandom) -> TreeKey {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            let zeros = String(
                repeating: "0",
                count: Int.random(in: 0..<4, using: &random) == 0 ? Int.random(in: 0..<300, using: &random) : 0)
            let limit: Int64 = Bool.random(using: &random) ? 12 : 3_000_000_000
            let number = Int64.random(in: -limit...limit, using: &random)
            return TreeKey(
                unchecked: (number < 0 ? "-" : Bool.random(using: &random) ? "" : "-") + zeros
                    + String(number.magnitude))
        default:
            let count = Int.random(in: 1...4, using: &random)
            return TreeKey(unchecked: (0..<count).map { _ in pieces.randomElement(using: &random) ?? "a" }.joined())
        }
    }
}

import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

struct NodeReaderTests {
    @Test func whatWasSetIsReadBack() throws {
        let tree = MemoryTree()
        try tree.set("/chats/c1", ["title": "鳩", "open": true, "members": ["u1": true, "u2": false], "count": 1.5])
        #expect(
            try tree.text()
                == #"{"chats":{"c1":{"count":1.5,"members":{"u1":true,"u2":false},"open":true,"title":"鳩"}}}"#)
        #expect(try tree.text("/chats/c1/members") == #"{"u1":true,"u2":false}"#)
        #expect(try tree.text("/chats/c1/title") == #""鳩""#)
        #expect(try tree.text("/chats/c2") == "null")
        #expect(try tree.text("/chats/c1/title/below") == "null")
    }

    @Test func textsAreEscapedOnTheWayOut() throws {
        let tree = MemoryTree()
        try tree.set("/", ["a\"\\b": "\"\\\n\u{1}/é😀", "😀": 1])
        #expect(try tree.text() == "{\"a\\\"\\\\b\":\"\\\"\\\\\\n\\u0001/é😀\",\"😀\":1}")
    }

    @Test func arraysAreReadAtEveryLevel() throws {
        let tree = MemoryTree()
        try tree.set("/", ["list": ["a", ["x": ["y", "z"]], "c"], "tail": 1, "1": 5])
        #expect(try tree.text() == #"{"1":5,"list":["a",{"x":["y","z"]},"c"],"tail":1}"#)
        #expect(try tree.text("/list") == #"["a",{"x":["y","z"]},"c"]"#)
        #expect(try tree.text("/list/1") == #"{"x":["y","z"]}"#)
        #expect(
            try tree.text("/", .export)
                == #"{"1":5,"list":{"0":"a","1":{"x":{"0":"y","1":"z"}},"2":"c"},"tail":1}"#)
    }

    @Test func arraysWithHolesKeepTheirIndexes() throws {
        let tree = MemoryTree()
        try tree.set(
            "/",
            [
                "a": ["0": "x", "3": "y"], "b": ["2": 1], "c": ["-1": 1, "0": 2], "d": ["0": 1, "k": 2], "e": ["00": 1],
            ])
        #expect(
            try tree.text()
                == #"{"a":["x",null,null,"y"],"b":{"2":1},"c":{"-1":1,"0":2},"d":{"0":1,"k":2},"e":{"00":1}}"#)
    }

    @Test func objectThatMayBeAnArrayIsRefusedBeforeItsRowsAreRead() throws {
        let tree = MemoryTree()
        try tree.set("/a", .array((0..<5_000).map { .number(Double($0)) }))
        try tree.set(
            "/b",
            .object(
                JSONObject(
                    uniqueMembers: (0..<50).map { .init("\($0)", .string(String(repeating: "x", count: 1_000))) })))
        for path in ["/a", "/b"] {
            let reader = MeteredReader(tree.rows, ReadingMeter(rows: 1_200, bytes: 100_000))
            var writer = JSONWriter()
            #expect(throws: TreeError.self) {
                try NodeReader(reader, codec: tree.codec).write(
                    TreePath(path), .plain, to: &writer, bytesMax: 2_000)
            }
        }
        // The gaps of an array count too.
        try tree.set("/c", .object(JSONObject(uniqueMembers: (0..<30).map { .init("\($0 == 29 ? 58 : $0)", 1) })))
        let text = try tree.text("/c")
        #expect(try tree.text("/c", bytesMax: text.utf8.count) == text)
        #expect(throws: TreeError.self) {
            try tree.text("/c", bytesMax: text.utf8.count - 1)
        }
    }

    @Test func randomObjectsAreReadAsTheNodesThatTheyAre() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for _ in 0..<300 {
            let tree = MemoryTree()
            try tree.set("/x", Self.randomValue(depth: 3, &random))
            let node = try tree.nodes.node(at: TreePath("/x"))
            var writer = JSONWriter()
            writer.write(node.plain)
            #expect(try tree.text("/x") == String(decoding: writer.bytes, as: UTF8.self), "seed \(seed)")
        }
    }

    private static func randomValue(depth: Int, _ random: inout SeededRandom) -> JSONValue {
        guard depth > 0, Int.random(in: 0..<4, using: &random) > 0 else { return 1 }
        var object: JSONObject = [:]
        if Int.random(in: 0..<4, using: &random) == 0 { object[".priority"] = 2 }
        for key in ["-1", "0", "00", "1", "2", "3", "4", "10", "a", "😀"].shuffled(using: &random).prefix(4) {
            if Int.random(in: 0..<3, using: &random) > 0 { object[key] = randomValue(depth: depth - 1, &random) }
        }
        return object.isEmpty ? 1 : .object(object)
    }

    @Test func prioritiesStandInExportFormatOnly() throws {
        let tree = MemoryTree()
        try tree.set(
            "/",
            [
                "a": [".value": 1, ".priority": "p"],
                "b": ["c": [".value": "x", ".priority": 2], "d": 3, ".priority": 4],
                ".priority": 5,
            ])
        #expect(
            try tree.text("/", .export)
                == #"{".priority":5,"a":{".value":1,".priority":"p"},"b":{".priority":4,"c":{".value":"x",".priority":2},"d":3}}"#
        )
        #expect(try tree.text() == #"{"a":1,"b":{"c":"x","d":3}}"#)
        #expect(try tree.text("/a", .export) == #"{".value":1,".priority":"p"}"#)
        #expect(try tree.text("/a") == "1")
        #expect(try tree.text("/b/.priority") == "4")
        #expect(try tree.text("/b/d/.priority") == "null")
        #expect(try tree.nodes.priority(at: TreePath("/a")) == .string("p"))
        #expect(try tree.nodes.leaf(at: TreePath("/a")) == .number(1))
        #expect(try tree.nodes.leaf(at: TreePath("/b")) == nil)
    }

    @Test func shallowNamesTheChildrenOnly() throws {
        let tree = MemoryTree()
        try tree.set("/", ["b": ["x": 1, "y": ["z": 2]], "a": 1, "10": ["k": 1], ".priority": 1])
        #expect(try tree.shallow() == #"{"10":true,"a":true,"b":true}"#)
        #expect(try tree.shallow("/a") == "1")
        #expect(try tree.shallow("/nothing") == "null")
        #expect(try tree.shallow("/.priority") == "1")
    }

    @Test func shallowJumpsOverWhatIsLarge() throws {
        let tree = MemoryTree()
        let large = JSONValue.array(Array(repeating: 1, count: 500))
        try tree.set("/", ["a": large, "b": ["x": large, "y": 1], "c": 1, "d": large])
        let counting = CountingReader(tree.rows)
        var writer = JSONWriter()
        try NodeReader(counting, codec: tree.codec).writeShallow(.root, to: &writer)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"a":true,"b":true,"c":true,"d":true}"#)
        #expect(counting.rowsSeen < 50)
    }

    /// A page by key costs two rows for each child at most, and no value.
    @Test(arguments: [TreeQuery.Limit.first(30), .last(30)])
    func shallowQueryByKeyReadsNothingBelowTheChildren(limit: TreeQuery.Limit) throws {
        let large = JSONValue.array(Array(repeating: .string(String(repeating: "x", count: 90)), count: 300))
        var rowsSeen: [Int] = []
        for value in [true, large] {
            let tree = MemoryTree()
            for index in 10..<70 { try tree.set("/list/u\(index)", value) }
            let counting = CountingReader(tree.rows)
            let runner = QueryRunner(counting, codec: tree.codec, indexCodec: IndexKeyCodec(prefix: [1]), bytesMax: 340)
            let query = TreeQuery(order: .key, limit: limit)
            let sortKeys = try runner.sortKeys(query, at: TreePath("/list"), by: .keys)
            rowsSeen.append(counting.rowsSeen)
            var writer = JSONWriter()
            try runner.writeShallow(sortKeys, to: &writer)
            #expect(counting.rowsSeen == rowsSeen.last)
            #expect(sortKeys.count == 30 && writer.bytes.count == 30 * 11 + 1)
            let small = QueryRunner(counting, codec: tree.codec, indexCodec: IndexKeyCodec(prefix: [1]), bytesMax: 300)
            #expect(throws: TreeError.self) { try small.writeShallow(sortKeys, to: &writer) }
        }
        #expect(rowsSeen[0] <= 31 && rowsSeen[1] <= 60, "\(rowsSeen)")
    }

    @Test func childKeysComeInOrderAfterTheOneGiven() throws {
        let tree = MemoryTree()
        try tree.set("/", ["b": ["x": 1], "a": ["y": 1, "z": 2], "10": 1, "9": 2])
        var seen: [String] = []
        try tree.nodes.forEachChildKey(of: .root, after: TreeKey("10")) { key in
            seen.append(key.text)
            return true
        }
        #expect(seen == ["a", "b"])
        seen = []
        try tree.nodes.forEachChildKey(of: .root) { key in
            seen.append(key.text)
            return seen.count < 3
        }
        #expect(seen == ["9", "10", "a"])
    }

    @Test func tooBigIsDetectedEarly() throws {
        let tree = MemoryTree()
        for index in 0..<100 { try tree.set("/list/k\(index)", .string(String(repeating: "x", count: 100))) }
        #expect(throws: TreeError.self) { try tree.text("/", bytesMax: 5000) }
        #expect(throws: TreeError.self) { try tree.nodes.node(at: .root, bytesMax: 5000) }
        #expect(try tree.text("/list/k1", bytesMax: 200).utf8.count == 102)
        #expect(try tree.text("/", bytesMax: 20_000).utf8.count < 20_000)
    }

    @Test func whatIsThereExists() throws {
        let tree = MemoryTree()
        try tree.set("/a", ["x": [".value": 1, ".priority": 2], "y": ["z": 3], ".priority": 1])
        #expect(try tree.nodes.exists(at: TreePath("/a/y")))
        #expect(try !tree.nodes.exists(at: TreePath("/a/w")))
    }
}

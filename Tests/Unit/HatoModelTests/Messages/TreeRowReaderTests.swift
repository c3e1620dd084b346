import HatoTesting
import Testing

@testable import HatoModel

@Suite struct TreeRowReaderTests {
    private func rows(_ text: String, pieces size: Int = .max) throws -> [[JSONValue]] {
        var reader = TreeRowReader()
        var rows: [[JSONValue]] = []
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            reader.append(bytes.prefix(size))
            bytes = bytes.dropFirst(size)
            while let row = try reader.nextRow() { rows.append(row) }
        }
        reader.finish()
        while let row = try reader.nextRow() { rows.append(row) }
        return rows
    }

    /// The tree after importing the rows one by one.
    private func tree(_ rows: [[JSONValue]]) throws -> TreeNode {
        try rows.reduce(.empty) { tree, row in
            tree.setting(try TreeNode(json: row[1]), at: try TreePath(row[0].string ?? ""))
        }
    }

    @Test(arguments: [
        "5", "null", "{}", "[]", #"{"a": null, "b": {}, "c": []}"#, #"{"a": 1, "b": {"c": "x", "d": true}}"#,
        #"[1, null, [2], {"x": 3}]"#, #"{".value": 5, ".priority": 1}"#, #"{".priority": 1, ".value": 5}"#,
        #"{"a": {".priority": null, ".value": "x"}}"#, #"{"a": {".value": null, ".priority": 3}}"#,
        #"{"a": {".value": null, "b": 1}}"#, #"{"é😀": {"00": 1, "0": 2}}"#, #"{"a": [{"b": [[1]]}]}"#,
    ])
    func rowsMakeTheTreeThatTheTextMeans(text: String) throws {
        let meant = try TreeNode(json: JSONParser.parse(text))
        #expect(try tree(rows(text)) == meant)
        for size in [1, 2, 3, 5] { #expect(try rows(text, pieces: size) == rows(text)) }
    }

    @Test func theFirstValueOfAnObjectBringsItsPriorities() throws {
        let text =
            #"{".priority": 1, "a": {".priority": 2, "b": {".priority": 3}, "c": {"d": 4}}, "e": {".priority": 5}}"#
        let expected: [[JSONValue]] = [["/.priority", 1], ["/a/.priority", 2], ["/a/c/d", 4]]
        #expect(try rows(text) == expected)
    }

    /// The order of the SDKs: a priority after the children.
    @Test func priorityAfterTheChildrenIsARowAfterThem() throws {
        let text = #"{"a": {"b": 1, ".priority": 2}, "c": {".value": 3, ".priority": 4}, ".priority": "p"}"#
        let expected: [[JSONValue]] = [
            ["/a/b", 1], ["/a/.priority", 2], ["/c", 3], ["/c/.priority", 4], ["/.priority", "p"],
        ]
        #expect(try rows(text) == expected)
    }

    @Test func invalidTreeIsRefusedWithItsPath() throws {
        let cases = [
            (#"{"a": {"b.c": 1}}"#, "invalid_key", "\"/a\""), (#"{"": 1}"#, "invalid_key", "\"/\""),
            (#"{"a": {".sv": "timestamp"}}"#, "invalid_server_value", "\"/a\""),
            (#"{"a": {".foo": 1}}"#, "invalid_key", ".foo"), (#"{"a": {".priority": true}}"#, "invalid_priority", "/a"),
            (#"{"a": {".priority": {".sv": "timestamp"}}}"#, "invalid_priority", "/a"),
            (#"{"a": {".value": {}}}"#, "invalid_value", "/a"),
            (#"{"a": {".value": 1, "b": 2}}"#, "invalid_value", "/a"),
            (#"{"a": {"b": null, ".value": 1}}"#, "invalid_value", "/a"),
            (#"{"a": {"b": {"x": 1}, "c": 2, "b": {"y": 3}}}"#, "duplicate_key", "\"/a\""),
            (#"{"a": {".priority": 1, "b": 2, ".priority": 3}}"#, "duplicate_key", "\"/a\""),
            ((0..<33).map { _ in #"{"a":"# }.joined() + "1" + String(repeating: "}", count: 33), "too_deep", "/a/a"),
        ]
        for (text, reason, place) in cases {
            let error = #expect(throws: ArgumentError.self, "\(text)") { try rows(text) }
            #expect(error?.reason == reason, "\(text)")
            #expect(error?.message.contains(place) == true, "\(error?.message ?? "")")
        }
        let deepest = (0..<32).map { _ in #"{"a":"# }.joined() + "1" + String(repeating: "}", count: 32)
        #expect(try rows(deepest).count == 1)
        #expect(throws: JSONError.self) { try rows(#"{"a": 1"#) }
        #expect(throws: JSONError.self) { try rows(#"{"a": 1} 2"#) }
    }

    @Test func duplicateNameIsFoundAtAnyDistance() throws {
        let members = (0..<5_000).map { #""k\#($0)": {"x": \#($0)}"# }.joined(separator: ", ")
        let text = #"{\#(members), "k17": {"y": 1}}"#
        let error = #expect(throws: ArgumentError.self) { try rows(text, pieces: 1_000) }
        #expect(error?.message.contains("\"k17\" occurs twice") == true, "\(error?.message ?? "")")
        // Each object has its own names, and names are compared by bytes: composed and decomposed letters differ.
        #expect(try rows("{\"a\": {\"b\": 1}, \"b\": {\"a\": 1}, \"\u{E9}\": 1, \"e\u{301}\": 2}").count == 4)
    }

    @Test func duplicateNamesBeyondTheLimitAreAccepted() throws {
        var reader = TreeRowReader(namesBytesMax: 0)
        reader.append(Array(#"{"a": 1, "a": 2}"#.utf8))
        reader.finish()
        var values: [JSONValue] = []
        while let row = try reader.nextRow() { values.append(row[1]) }
        #expect(values == [1, 2])
    }

    @Test func randomTreesComeThrough() throws {
        var random = SeededRandom(seed: SeededRandom.seed())
        for _ in 0..<300 {
            let json = Self.json(depth: 4, &random)
            let meant = try TreeNode(json: json)
            let text = String(decoding: json.encoded, as: UTF8.self)
            let rows = try rows(text, pieces: Int.random(in: 1...40, using: &random))
            #expect(try tree(rows) == meant, "\(text)")
        }
    }

    private static func json(depth: Int, _ random: inout SeededRandom) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 4), using: &random) {
        case 0: return .null
        case 1: return .bool(.random(using: &random))
        case 2: return .number(Double(Int.random(in: -5...5, using: &random)))
        case 3: return .string(["", "x", "é😀", "\"\\\n"].randomElement(using: &random) ?? "")
        case 4: return .array((0..<Int.random(in: 0...3, using: &random)).map { _ in json(depth: depth - 1, &random) })
        default:
            var object = JSONObject()
            for key in ["a", "b", "10", "9", "é"] where Bool.random(using: &random) {
                object[key] = json(depth: depth - 1, &random)
            }
            if Bool.random(using: &random) {
                object[".priority"] = .number(Double(Int.random(in: 0...3, using: &random)))
            }
            return .object(object)
        }
    }
}

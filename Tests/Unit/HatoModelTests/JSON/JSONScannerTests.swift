import HatoModel
import Testing

@Suite struct JSONScannerTests {
    @Test func anEnvelopeIsReadInOnePass() throws {
        let bytes = Array(#" {"jsonrpc":"2.0","id": "x\n1" ,"method":"messages.get","params":{"path":"/a"}} "#.utf8)
        var scanner = JSONScanner()
        #expect(try scanner.kind(bytes.span) == .object)
        var members = try scanner.beginObject(bytes.span)
        var method: String?
        var id: String?
        var params: JSONObject?
        while let name = try scanner.nextMember(bytes.span, &members) {
            switch name {
            case "method": method = try scanner.string(bytes.span)
            case "id":
                #expect(try scanner.kind(bytes.span) == .string)
                let range = try scanner.skip(bytes.span)
                id = String(decoding: bytes[range], as: UTF8.self)
            case "params": params = try scanner.object(bytes.span)
            default: _ = try scanner.skip(bytes.span)
            }
        }
        try scanner.end(bytes.span)
        #expect(method == "messages.get")
        #expect(id == #""x\n1""#)
        #expect(params == ["path": "/a"])
    }

    @Test func aBatchIsSplitIntoItsElements() throws {
        let bytes = Array(#"[ 1 , {"a":[1,2]},"x"]"#.utf8)
        var scanner = JSONScanner()
        var cursor = try scanner.beginArray(bytes.span)
        var elements: [String] = []
        while try scanner.nextElement(bytes.span, &cursor) {
            elements.append(String(decoding: bytes[try scanner.skip(bytes.span)], as: UTF8.self))
        }
        try scanner.end(bytes.span)
        #expect(elements == ["1", #"{"a":[1,2]}"#, #""x""#])
    }

    @Test(arguments: [
        #"{"id":1,"id":2}"#, #"{"id":1,}"#, #"{,"id":1}"#, #"{"id" 1}"#, #"{"id":1 "x":2}"#, #"{"id":1}}"#, #"{"id":1"#,
        #"{"id":{"a":1,"a":2}}"#, #"{"id":"\ud800"}"#,
    ])
    func anEnvelopeIsReadAsStrictlyAsAText(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(throws: JSONError.self) {
            var scanner = JSONScanner()
            var members = try scanner.beginObject(bytes.span)
            while try scanner.nextMember(bytes.span, &members) != nil { _ = try scanner.skip(bytes.span) }
            try scanner.end(bytes.span)
        }
    }

    @Test(arguments: ["[,1]", "[1,]", "[1 2]", "[1", "[", "[1]]"])
    func aBatchIsReadAsStrictlyAsAText(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(throws: JSONError.self) {
            var scanner = JSONScanner()
            var elements = try scanner.beginArray(bytes.span)
            while try scanner.nextElement(bytes.span, &elements) { _ = try scanner.skip(bytes.span) }
            try scanner.end(bytes.span)
        }
    }

    @Test func piecesAreOnlyWhatWasAskedFor() {
        let bytes = Array("1".utf8)
        var scanner = JSONScanner()
        #expect(throws: JSONError.self) { _ = try scanner.string(bytes.span) }
        #expect(throws: JSONError.self) { _ = try scanner.object(bytes.span) }
        #expect(throws: JSONError.self) { _ = try scanner.beginArray(bytes.span) }
    }

    /// The memory that the values of a text take, as it is laid out on 64-bit machines. How much an array has to spare
    /// depends on what the allocator has free.
    static let memories: [(text: String, range: ClosedRange<Int>)] = [
        ("1", 0...0), ("null", 0...0), ("\"short\"", 0...0), ("[]", 0...0), ("{}", 0...0),
        ("\"\(String(repeating: "x", count: 100))\"", 132...164), ("[1]", 64...112), ("{\"a\":1}", 160...256),
        ("[\(String(repeating: "[1],", count: 1_000))1]", 80_000...160_000),
        ("[\(String(repeating: "1,", count: 1_000))1]", 16_000...40_000),
        ("{\"\(String(repeating: "n", count: 1_000))\":{\"a\":{}}}", 1_300...1_700),
    ]

    @Test(arguments: memories.indices)
    func memoryIsAboutWhatTheValuesTake(_ index: Int) throws {
        let (text, range) = Self.memories[index]
        let bytes = Array(text.utf8)
        var scanner = JSONScanner()
        _ = try scanner.value(bytes.span)
        #expect(range.contains(scanner.memory), "\(scanner.memory)")
    }

    @Test func valuesThatTakeTooMuchMemoryAreRefused() throws {
        for text in ["[[1],[1],[1],[1],[1],[1],[1],[1],[1],[1],[1],[1]", "[\(String(repeating: "1,", count: 100))1"] {
            let bytes = Array(text.utf8)
            var scanner = JSONScanner(memoryMax: 1_000)
            do {
                _ = try scanner.value(bytes.span)
                Issue.record("accepted")
            } catch { #expect(error.reason == .tooManyValues) }
        }
    }

    @Test func nestingCountsFromTheTopOfTheText() throws {
        let bytes = Array("{\"params\":{\"a\":[]}}".utf8)
        var scanner = JSONScanner(depth: 2)
        var members = try scanner.beginObject(bytes.span)
        _ = try scanner.nextMember(bytes.span, &members)
        #expect(throws: JSONError(.tooDeep, at: 15, limit: 2)) { _ = try scanner.value(bytes.span) }
    }
}

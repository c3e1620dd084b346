import HatoTesting
import Testing

@testable import HatoModel

@Suite struct JSONTokenReaderTests {
    private static let text = #"""
        {"a": [1, -2.5e3, true, null, [], {}], "b\n\u00e9\ud83d\ude00": {"c": "x\\\"y", "é😀": ""}, "": false,
        "long": "0123456789 0123456789 \u0041", "n": 12345678901234567890}
        """#

    private func tokens(_ bytes: [UInt8], pieces size: Int) throws -> [JSONTokenReader.Token] {
        var reader = JSONTokenReader()
        var tokens: [JSONTokenReader.Token] = []
        var start = 0
        while start < bytes.count {
            reader.append(bytes[start..<min(start + size, bytes.count)])
            start += size
            while let token = try reader.next() { tokens.append(token) }
        }
        reader.finish()
        while let token = try reader.next() { tokens.append(token) }
        return tokens
    }

    /// The value of a sequence of tokens.
    private func value(_ tokens: inout ArraySlice<JSONTokenReader.Token>) -> JSONValue {
        switch tokens.removeFirst() {
        case .value(let value): return value
        case .beginArray:
            var elements: [JSONValue] = []
            while tokens.first != .endArray { elements.append(value(&tokens)) }
            tokens.removeFirst()
            return .array(elements)
        case .beginObject:
            var object = JSONObject()
            while case .name(let name)? = tokens.popFirst() { object.append(name, value(&tokens)) }
            return .object(object)
        case .name, .endArray, .endObject: return .null
        }
    }

    @Test func piecesOfEverySizeMakeTheSameTokens() throws {
        let bytes = Array(Self.text.utf8)
        let parsed = try JSONParser.parse(bytes)
        for size in 1...bytes.count {
            var tokens = try tokens(bytes, pieces: size)[...]
            #expect(value(&tokens) == parsed, "pieces of \(size)")
            #expect(tokens.isEmpty)
        }
        for text in ["1", " 10 ", "\"a\"", "null", "[]", "{}", "[[[1]]]", "-0"] {
            for size in 1...3 {
                var tokens = try tokens(Array(text.utf8), pieces: size)[...]
                #expect(try value(&tokens) == JSONParser.parse(text))
            }
        }
    }

    @Test(arguments: [
        "", "{", "[1", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "[1}", "{\"a\":1]", "1 2", "tru",
        "nul",
        "\"a", "\"\\x\"", "\"\\ud83d\"", "01", "1.", "-", "1e", "[1 2]", "\"\u{01}\"", "{\"a\" 1}", "]", "}", ":", ",",
    ])
    func wrongTextIsRefusedWhereverItIsCut(text: String) throws {
        let bytes = Array(text.utf8)
        let whole = #expect(throws: JSONError.self) { try JSONParser.parse(bytes) }
        for size in 1...max(1, bytes.count) {
            let error = #expect(throws: JSONError.self, "pieces of \(size)") { try tokens(bytes, pieces: size) }
            #expect(error?.reason == whole?.reason, "pieces of \(size)")
        }
    }

    @Test func endlessTokenIsRefused() throws {
        var reader = JSONTokenReader(depth: 3, tokenBytesMax: 100)
        reader.append("[\"".utf8)
        #expect(try reader.next() == .beginArray)
        var error: JSONError?
        var appended = 0
        while error == nil, appended < 10_000 {
            reader.append(Array(repeating: UInt8(ascii: "x"), count: 30))
            appended += 30
            do { #expect(try reader.next() == nil) } catch let found { error = found }
        }
        #expect(error?.reason == .tooLong)
        #expect(appended == 120)
        var deep = JSONTokenReader(depth: 3)
        deep.append("[[[[".utf8)
        for _ in 0..<3 { #expect(try deep.next() == .beginArray) }
        #expect(throws: JSONError(.tooDeep, at: 3, limit: 3)) { try deep.next() }
    }
}

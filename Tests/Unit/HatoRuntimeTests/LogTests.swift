import FoundationEssentials
import HatoModel
import Logging
import Testing

@testable import HatoRuntime

@Suite struct LogTests {
    private let time = Date(timeIntervalSince1970: 1_700_000_000)

    @Test func aTextLineIsOneLine() {
        let handler = StandardErrorLogHandler(label: "hato.auth", format: .text, level: .info)
        let line = handler.line(.warning, "two\nlines", ["b": "2\u{1B}[2J", "a": "鳩"], now: time)
        #expect(line == "2023-11-14T22:13:20.000Z warning hato.auth: two\\nlines a=鳩 b=2\\u{1b}[2J\n")
    }

    @Test func aJSONLineKeepsItsOwnFields() throws {
        let handler = StandardErrorLogHandler(label: "hato.auth", format: .json, level: .info)
        let line = handler.line(.info, "\"quoted\"", ["level": "forged", "uid": "u"], now: time)
        let value = try JSONParser.parse(Array(line.utf8.dropLast()).span)
        #expect(value["level"] == "info")
        #expect(value["uid"] == "u")
        #expect(value["message"] == "\"quoted\"")
    }
}

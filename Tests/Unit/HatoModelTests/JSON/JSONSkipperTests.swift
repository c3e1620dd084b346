import HatoModel
import HatoTesting
import Testing

/// The skipper against the scanner, which reads the same values.
@Suite struct JSONSkipperTests {
    @Test(arguments: [
        ("null", 0..<4), (" [1, {\"a\" : \"}\\\"]\"}] ,", 1..<20), ("-1.5e+3]", 0..<7),
        (#""\ud83d\uDE00\u00e9鳩""#, 0..<23),
        ("{}", 0..<2), ("[]", 0..<2), ("0,1", 0..<1),
    ])
    func rangeIsThatOfTheValue(_ text: String, _ range: Range<Int>) throws {
        let bytes = Array(text.utf8)
        var scanner = JSONScanner()
        #expect(try JSONSkipper.skip(bytes.span, &scanner) == range)
        #expect(scanner.position == range.upperBound)
    }

    @Test(arguments: [
        ("", JSONError.Reason.endedEarly), ("[1,2", .endedEarly), ("[1}", .unexpectedByte),
        ("{\"a\":1]", .unexpectedByte),
        ("{\"a\" 1}", .unexpectedByte), ("{1:2}", .unexpectedByte), ("[,]", .unexpectedByte), ("[1,]", .unexpectedByte),
        ("{\"a\":1,}", .unexpectedByte), ("01", .badNumber), ("-", .endedEarly), ("1.x", .badNumber),
        ("1e+", .endedEarly),
        ("nul", .endedEarly), ("trux", .unexpectedByte), ("\"a", .endedEarly), ("\"\\", .endedEarly),
        ("\"\\x\"", .badEscape), ("\"\\u12g4\"", .badEscape), ("\"\\ud800\"", .unpairedSurrogate),
        ("\"\\udc00\"", .unpairedSurrogate), ("\"\\ud800\\u0041\"", .unpairedSurrogate),
        ("\"\u{1}\"", .controlCharacter),
        ("[[[[1]]]]", .tooDeep), ("\u{B}1", .unexpectedByte),
    ])
    func whatIsNoJSONIsRefused(_ text: String, _ reason: JSONError.Reason) {
        let bytes = Array(text.utf8)
        var scanner = JSONScanner(depth: 3)
        let error = #expect(throws: JSONError.self) { try JSONSkipper.skip(bytes.span, &scanner) }
        #expect(error?.reason == reason)
    }

    @Test func textThatIsNoUTF8IsRefusedAtItsPlace() {
        let bytes: [UInt8] = Array("  [\"鳩\",\"".utf8) + [0xC0, 0x80] + Array("\"]".utf8)
        var scanner = JSONScanner()
        let error = #expect(throws: JSONError.self) { try JSONSkipper.skip(bytes.span, &scanner) }
        #expect(error == JSONError(.badUTF8, at: 10))
    }

    /// The containers around a value that is skipped count.
    @Test(arguments: [(3, true), (2, false)]) func depthIsThatOfTheWholeText(_ depth: Int, _ isAccepted: Bool) throws {
        let bytes = Array(#"{"a":[[1]]}"#.utf8)
        var scanner = JSONScanner(depth: depth)
        var members = try scanner.beginObject(bytes.span)
        _ = try scanner.nextMember(bytes.span, &members)
        #expect(((try? JSONSkipper.skip(bytes.span, &scanner)) != nil) == isAccepted)
    }

    /// What the scanner refuses and the skipper does not.
    private static let exceptions: Set<JSONError.Reason> = [.duplicateMember, .numberTooLarge]

    @Test func valueIsSkippedWhereTheScannerReadsOne() {
        let failures = FuzzInputs.failures(5_000) { random in
            let bytes = random.jsonText()
            let shown = String(decoding: bytes, as: UTF8.self).debugDescription
            let depth = random.one(of: [1, 3, 64])
            var (scanner, skipped) = (JSONScanner(depth: depth), JSONScanner(depth: depth))
            let range = try? JSONSkipper.skip(bytes.span, &skipped)
            do throws(JSONError) {
                let read = try scanner.skip(bytes.span)
                return range == read && skipped.position == scanner.position ? nil : "another range: \(shown)"
            } catch {
                if range == nil || Self.exceptions.contains(error.reason) { return nil }
                return "skipped: \(shown) at depth \(depth) (\(error))"
            }
        }
        #expect(failures == [])
    }
}

import HatoModel

/// The number of a request (`r`) in a message that cannot be read as a whole: it is too long, or no JSON.
///
/// Clients write the number before the body, but for one whose dictionaries have no order: then it stands behind.
enum RequestNumber {
    /// Bytes at the start and at the end in which the number is searched.
    static let bytesMax = 16 << 10

    /// The integer that `number` is exactly.
    static func exact(_ number: Double) -> Int64? {
        // Integers up to here are exact as doubles.
        number.magnitude <= 9_007_199_254_740_992 ? Int64(exactly: number) : nil
    }

    /// - Parameters:
    ///   - start: the first bytes of the message; more than `bytesMax` are ignored.
    ///   - end: its last bytes, in the same way.
    static func find(inStart start: ArraySlice<UInt8>, end: ArraySlice<UInt8>) -> Int64? {
        if let number = try? number(inStart: Array(start.prefix(bytesMax))) { return number }
        return number(inEnd: end.suffix(bytesMax))
    }

    /// Throws `JSONError` when the text ends, or is wrong, before the number.
    private static func number(inStart bytes: [UInt8]) throws(JSONError) -> Int64? {
        let span = bytes.span
        var scanner = JSONScanner()
        var members = try scanner.beginObject(span)
        while let name = try scanner.nextMember(span, &members) {
            guard name == "d", try scanner.kind(span) == .object else {
                _ = try PassedText.check(&scanner, span)
                continue
            }
            var inner = try scanner.beginObject(span)
            while let name = try scanner.nextMember(span, &inner) {
                guard name == "r", try scanner.kind(span) == .number else {
                    _ = try PassedText.check(&scanner, span)
                    continue
                }
                let number = exact(try scanner.number(span))
                // The digits may go on where the text was cut.
                return scanner.position < span.count ? number : nil
            }
        }
        return nil
    }

    /// Members behind the body: they end the message, so the text from the name on has exactly the brackets that are
    /// open there. In a string, the quotes of such a name would be escaped.
    private static func number(inEnd bytes: ArraySlice<UInt8>) -> Int64? {
        let name = Array("\"r\":".utf8)
        guard bytes.count > name.count else { return nil }
        var index = bytes.endIndex - name.count
        while index >= bytes.startIndex {
            if bytes[index..<index + name.count].elementsEqual(name) {
                let text = Array("{\"d\":{".utf8) + bytes[index...] + [0x20]
                guard (try? JSONParser.parse(text)) != nil else { return nil }
                return try? number(inStart: text)
            }
            index -= 1
        }
        return nil
    }
}

extension JSONScanner {
    /// Reads the string whose opening quote is at `position`.
    mutating func readString(_ bytes: Span<UInt8>) throws(JSONError) -> String {
        position += 1
        let start = position
        position = plainRunEnd(in: bytes, from: position)
        guard position < bytes.count else { throw JSONError(.endedEarly, at: position) }
        switch bytes[position] {
        case UInt8(ascii: "\""):
            let text = try utf8(bytes, start..<position)
            position += 1
            return text
        case UInt8(ascii: "\\"): return try readEscapedString(bytes, from: start)
        default: throw JSONError(.controlCharacter, at: position)
        }
    }

    /// The same with the first escape at `position`: copies the bytes read since `start`, and decodes the rest after
    /// them.
    private mutating func readEscapedString(_ bytes: Span<UInt8>, from start: Int) throws(JSONError) -> String {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(position - start + 32)
        for index in start..<position { decoded.append(bytes[index]) }
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") {
                // Escapes decode to whole characters, so invalid bytes are invalid before and after decoding; only
                // their position changes.
                let text: String
                do { text = String(copying: try UTF8Span(validating: decoded.span)) } catch {
                    throw JSONError(.badUTF8, at: start)
                }
                position += 1
                return text
            }
            guard byte >= 0x20 else { throw JSONError(.controlCharacter, at: position) }
            if byte == UInt8(ascii: "\\") {
                try readEscape(bytes, into: &decoded)
            } else {
                decoded.append(byte)
                position += 1
            }
        }
        throw JSONError(.endedEarly, at: position)
    }

    /// Reads the escape sequence that begins at `position`.
    private mutating func readEscape(_ bytes: Span<UInt8>, into decoded: inout [UInt8]) throws(JSONError) {
        let start = position
        guard start + 1 < bytes.count else { throw JSONError(.endedEarly, at: bytes.count) }
        position += 2
        switch bytes[start + 1] {
        case UInt8(ascii: "\""): decoded.append(UInt8(ascii: "\""))
        case UInt8(ascii: "\\"): decoded.append(UInt8(ascii: "\\"))
        case UInt8(ascii: "/"): decoded.append(UInt8(ascii: "/"))
        case UInt8(ascii: "b"): decoded.append(0x08)
        case UInt8(ascii: "f"): decoded.append(0x0C)
        case UInt8(ascii: "n"): decoded.append(0x0A)
        case UInt8(ascii: "r"): decoded.append(0x0D)
        case UInt8(ascii: "t"): decoded.append(0x09)
        case UInt8(ascii: "u"): appendUTF8(try readScalar(bytes, escapeAt: start), to: &decoded)
        default: throw JSONError(.badEscape, at: start)
        }
    }

    /// The character of `\uXXXX`, or of two of them that are a surrogate pair; `position` is after the first `\u`.
    private mutating func readScalar(_ bytes: Span<UInt8>, escapeAt start: Int) throws(JSONError) -> UInt32 {
        let unit = try readHex(bytes)
        switch unit {
        case 0xD800...0xDBFF:
            guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
                bytes[position + 1] == UInt8(ascii: "u")
            else { throw JSONError(.unpairedSurrogate, at: start) }
            position += 2
            let low = try readHex(bytes)
            guard 0xDC00...0xDFFF ~= low else { throw JSONError(.unpairedSurrogate, at: start) }
            return 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
        case 0xDC00...0xDFFF:
            throw JSONError(.unpairedSurrogate, at: start)
        default:
            return unit
        }
    }

    private mutating func readHex(_ bytes: Span<UInt8>) throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard position < bytes.count else { throw JSONError(.endedEarly, at: position) }
            let byte = bytes[position]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw JSONError(.badEscape, at: position)
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    /// - Parameter scalar: no surrogate, and below 0x110000.
    private func appendUTF8(_ scalar: UInt32, to decoded: inout [UInt8]) {
        switch scalar {
        case 0..<0x80:
            decoded.append(UInt8(truncatingIfNeeded: scalar))
        case 0x80..<0x800:
            decoded.append(0xC0 | UInt8(truncatingIfNeeded: scalar >> 6))
            decoded.append(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
        case 0x800..<0x10000:
            decoded.append(0xE0 | UInt8(truncatingIfNeeded: scalar >> 12))
            decoded.append(0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F))
            decoded.append(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
        default:
            decoded.append(0xF0 | UInt8(truncatingIfNeeded: scalar >> 18))
            decoded.append(0x80 | UInt8(truncatingIfNeeded: scalar >> 12 & 0x3F))
            decoded.append(0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F))
            decoded.append(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F))
        }
    }

    @inline(__always)
    func utf8(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(JSONError) -> String {
        do {
            return String(copying: try UTF8Span(validating: bytes.extracting(range)))
        } catch {
            throw JSONError(.badUTF8, at: range.lowerBound + error.byteOffsets.lowerBound)
        }
    }
}

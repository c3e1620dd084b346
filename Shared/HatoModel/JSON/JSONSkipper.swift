/// Passes over a value of a JSON text without making anything of it, for texts that are copied as they are.
///
/// It is as strict as `JSONScanner`, with two exceptions: it keeps no names, so it does not detect a duplicate one, and
/// it does not detect a number that no double holds.
public struct JSONSkipper {
    /// The offset of the next byte to be read.
    private var position: Int
    private var depth: Int
    private let depthMax: Int

    /// Skips the next value of `scanner` and returns its range, without the white space around it. Throws `JSONError`.
    ///
    /// - Parameter bytes: the text that the scanner reads.
    public static func skip(_ bytes: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONError) -> Range<Int> {
        _ = scanner.nextByte(bytes)
        let start = scanner.position
        var skipper = JSONSkipper(position: start, depth: scanner.depth, depthMax: scanner.depthMax)
        try skipper.skipValue(bytes)
        let range = start..<skipper.position
        do { _ = try UTF8Span(validating: bytes.extracting(range)) } catch {
            throw JSONError(.badUTF8, at: start + error.byteOffsets.lowerBound)
        }
        scanner.position = skipper.position
        return range
    }

    /// Its own calls go as deep as the scanner permits.
    private mutating func skipValue(_ bytes: Span<UInt8>) throws(JSONError) {
        switch nextByte(bytes) {
        case UInt8(ascii: "\""): try skipString(bytes)
        case UInt8(ascii: "{"): try skipContainer(bytes, isObject: true)
        case UInt8(ascii: "["): try skipContainer(bytes, isObject: false)
        case UInt8(ascii: "t"): try skipWord("true", bytes)
        case UInt8(ascii: "f"): try skipWord("false", bytes)
        case UInt8(ascii: "n"): try skipWord("null", bytes)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try skipNumber(bytes)
        default: throw unexpected(bytes)
        }
    }

    private mutating func skipContainer(_ bytes: Span<UInt8>, isObject: Bool) throws(JSONError) {
        guard depth < depthMax else { throw JSONError(.tooDeep, at: position, limit: depthMax) }
        depth += 1
        position += 1
        let end = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
        if nextByte(bytes) != end {
            repeat {
                if isObject { try skipName(bytes) }
                try skipValue(bytes)
            } while try isFollowed(bytes, before: end)
        }
        depth -= 1
        position += 1
    }

    private mutating func skipName(_ bytes: Span<UInt8>) throws(JSONError) {
        guard nextByte(bytes) == UInt8(ascii: "\"") else { throw unexpected(bytes) }
        try skipString(bytes)
        guard nextByte(bytes) == UInt8(ascii: ":") else { throw unexpected(bytes) }
        position += 1
    }

    /// Whether a comma follows, which is skipped; the closing bracket is not.
    private mutating func isFollowed(_ bytes: Span<UInt8>, before end: UInt8) throws(JSONError) -> Bool {
        let byte = nextByte(bytes)
        if byte == end { return false }
        guard byte == UInt8(ascii: ",") else { throw unexpected(bytes) }
        position += 1
        return true
    }

    // MARK: Strings

    /// Skips the string whose opening quote is at `position`.
    private mutating func skipString(_ bytes: Span<UInt8>) throws(JSONError) {
        position += 1
        while true {
            position = plainRunEnd(in: bytes, from: position)
            guard position < bytes.count else { throw JSONError(.endedEarly, at: position) }
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"): try skipEscape(bytes)
            default: throw JSONError(.controlCharacter, at: position)
            }
        }
    }

    private mutating func skipEscape(_ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        guard start + 1 < bytes.count else { throw JSONError(.endedEarly, at: bytes.count) }
        position += 2
        switch bytes[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return
        case UInt8(ascii: "u"):
            let unit = try hexUnit(bytes)
            guard 0xD800...0xDFFF ~= unit else { return }
            guard unit <= 0xDBFF, byte(bytes) == UInt8(ascii: "\\"), position + 1 < bytes.count,
                bytes[position + 1] == UInt8(ascii: "u")
            else { throw JSONError(.unpairedSurrogate, at: start) }
            position += 2
            let low = try hexUnit(bytes)
            guard 0xDC00...0xDFFF ~= low else { throw JSONError(.unpairedSurrogate, at: start) }
        default: throw JSONError(.badEscape, at: start)
        }
    }

    private mutating func hexUnit(_ bytes: Span<UInt8>) throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard position < bytes.count else { throw JSONError(.endedEarly, at: position) }
            let digit: UInt8
            switch bytes[position] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[position] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[position] - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[position] - UInt8(ascii: "A") + 10
            default: throw JSONError(.badEscape, at: position)
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    // MARK: Numbers and words

    private mutating func skipNumber(_ bytes: Span<UInt8>) throws(JSONError) {
        if byte(bytes) == UInt8(ascii: "-") { position += 1 }
        if byte(bytes) == UInt8(ascii: "0") {
            position += 1
            if isDigit(bytes) { throw JSONError(.badNumber, at: position) }
        } else {
            try skipDigits(bytes)
        }
        if byte(bytes) == UInt8(ascii: ".") {
            position += 1
            try skipDigits(bytes)
        }
        guard byte(bytes) | 0x20 == UInt8(ascii: "e") else { return }
        position += 1
        if byte(bytes) == UInt8(ascii: "+") || byte(bytes) == UInt8(ascii: "-") { position += 1 }
        try skipDigits(bytes)
    }

    /// At least one.
    private mutating func skipDigits(_ bytes: Span<UInt8>) throws(JSONError) {
        guard isDigit(bytes) else {
            throw JSONError(position < bytes.count ? .badNumber : .endedEarly, at: position)
        }
        while isDigit(bytes) { position += 1 }
    }

    private mutating func skipWord(_ word: StaticString, _ bytes: Span<UInt8>) throws(JSONError) {
        for index in 0..<word.utf8CodeUnitCount {
            guard position < bytes.count else { throw JSONError(.endedEarly, at: position) }
            guard bytes[position] == word.utf8Start[index] else { throw unexpected(bytes) }
            position += 1
        }
    }

    // MARK: Small steps

    /// The next byte that is not white space, without consuming it; 0, which is no byte of JSON, at the end.
    @inline(__always)
    private mutating func nextByte(_ bytes: Span<UInt8>) -> UInt8 {
        while position < bytes.count {
            let byte = bytes[position]
            if byte > UInt8(ascii: " ") { return byte }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return 0 }
            position += 1
        }
        return 0
    }

    /// The byte at `position`; 0 at the end.
    @inline(__always)
    private func byte(_ bytes: Span<UInt8>) -> UInt8 { position < bytes.count ? bytes[position] : 0 }

    @inline(__always)
    private func isDigit(_ bytes: Span<UInt8>) -> Bool { byte(bytes) &- UInt8(ascii: "0") <= 9 }

    private func unexpected(_ bytes: Span<UInt8>) -> JSONError {
        JSONError(position < bytes.count ? .unexpectedByte : .endedEarly, at: position)
    }
}

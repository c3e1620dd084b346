import HatoModel

/// String operations of the language: lengths and orders in UTF-16, searches byte by byte.
enum RulesText {
    /// Formats a number as JavaScript does: integral numbers without a fraction.
    static func text(of number: Double) -> String {
        if number.isNaN { return "NaN" }
        if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
        if number == number.rounded(.towardZero), number.magnitude < 1e15 { return String(Int64(number)) }
        var writer = JSONWriter()
        writer.write(number)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// The length in UTF-16 units.
    static func length(_ text: String) -> Int {
        var length = 0
        let bytes = text.utf8.span
        for index in bytes.indices {
            let byte = bytes[index]
            if byte & 0xC0 != 0x80 { length += byte >= 0xF0 ? 2 : 1 }
        }
        return length
    }

    static func begins(_ text: String, with part: String) -> Bool {
        let (bytes, wanted) = (text.utf8.span, part.utf8.span)
        return wanted.count <= bytes.count && matches(bytes, at: 0, wanted)
    }

    static func ends(_ text: String, with part: String) -> Bool {
        let (bytes, wanted) = (text.utf8.span, part.utf8.span)
        return wanted.count <= bytes.count && matches(bytes, at: bytes.count - wanted.count, wanted)
    }

    private static func matches(_ bytes: Span<UInt8>, at start: Int, _ wanted: Span<UInt8>) -> Bool {
        for index in wanted.indices where bytes[start + index] != wanted[index] { return false }
        return true
    }

    /// Finds `part` in `text` at or after `start`, as an offset of bytes, in at most as many steps as both have bytes
    /// (Knuth, Morris and Pratt).
    struct Search {
        private let wanted: [UInt8]
        /// For each length of a partial match, the length that remains when the next byte differs. 32 bits: texts are
        /// shorter than `RulesLimits.textBytesMax`, and this array takes four times the bytes of one.
        private let fallback: [Int32]

        init(_ part: String) {
            wanted = Array(part.utf8)
            var fallback = [Int32](repeating: 0, count: wanted.count)
            var length = 0
            for index in wanted.indices.dropFirst() {
                while length > 0, wanted[index] != wanted[length] { length = Int(fallback[length - 1]) }
                if wanted[index] == wanted[length] { length += 1 }
                fallback[index] = Int32(truncatingIfNeeded: length)
            }
            self.fallback = fallback
        }

        func first(in text: Span<UInt8>, from start: Int) -> Int? {
            if wanted.isEmpty { return start }
            var length = 0
            var index = start
            while index < text.count {
                while length > 0, text[index] != wanted[length] { length = Int(fallback[length - 1]) }
                if text[index] == wanted[length] { length += 1 }
                index += 1
                if length == wanted.count { return index - length }
            }
            return nil
        }
    }

    static func contains(_ text: String, _ part: String) -> Bool {
        part.utf8.count <= text.utf8.count && Search(part).first(in: text.utf8.span, from: 0) != nil
    }

    /// Replaces every occurrence of `part`, literally; nil when the result would exceed the limit of a text.
    ///
    /// An empty `part` occurs before, between and after all scalars, as in Java's `String.replace`. (Java counts UTF-16
    /// units and would split a surrogate pair, which no text here can hold.)
    static func replacing(_ part: String, in text: String, with other: String) -> String? {
        if part.utf8.isEmpty { return separating(text, with: other) }
        let search = Search(part)
        let (bytes, insert) = (text.utf8.span, other.utf8.span)
        let width = part.utf8.count
        var result: [UInt8] = []
        var start = 0
        while let found = search.first(in: bytes, from: start) {
            bytes.extracting(start..<found).withUnsafeBufferPointer { result.append(contentsOf: $0) }
            insert.withUnsafeBufferPointer { result.append(contentsOf: $0) }
            guard result.count <= RulesLimits.textBytesMax else { return nil }
            start = found + width
        }
        if start == 0 { return text }
        bytes.extracting(start..<bytes.count).withUnsafeBufferPointer { result.append(contentsOf: $0) }
        return result.count <= RulesLimits.textBytesMax ? String(decoding: result, as: UTF8.self) : nil
    }

    /// `separator` before, between and after all scalars of `text`; nil when that would exceed the limit of a text.
    private static func separating(_ text: String, with separator: String) -> String? {
        if separator.utf8.isEmpty { return text }
        let scalars = text.unicodeScalars
        let (added, isTooLong) = (scalars.count + 1).multipliedReportingOverflow(by: separator.utf8.count)
        guard !isTooLong, added <= RulesLimits.textBytesMax - min(text.utf8.count, RulesLimits.textBytesMax) else {
            return nil
        }
        var result = separator
        result.reserveCapacity(text.utf8.count + added)
        for scalar in scalars {
            result.unicodeScalars.append(scalar)
            result += separator
        }
        return result
    }
}

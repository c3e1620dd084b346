extension JSONScanner {
    /// Reads the number that begins at `position`.
    ///
    /// Integers, and decimals whose digits and power of ten are both exact as doubles (Clinger's fast path: below 2^53,
    /// and up to 10^22), are computed here with one rounding; other numbers are left to the standard library, which
    /// rounds correctly too.
    mutating func readNumber(_ bytes: Span<UInt8>) throws(JSONError) -> Double {
        let start = position
        var isNegative = false
        if byte(bytes) == UInt8(ascii: "-") {
            isNegative = true
            position += 1
        }
        var digits = Digits()
        if byte(bytes) == UInt8(ascii: "0") {
            position += 1
        } else {
            try readDigits(bytes, into: &digits)
        }
        if byte(bytes) == UInt8(ascii: ".") {
            position += 1
            let first = position
            try readDigits(bytes, into: &digits)
            digits.exponent = first - position
        }
        let last = byte(bytes)
        if last == UInt8(ascii: "e") || last == UInt8(ascii: "E") {
            try readExponent(bytes, into: &digits)
        } else if last >= UInt8(ascii: "0") && last <= UInt8(ascii: "9") {
            throw JSONError(.badNumber, at: position)
        }
        if let magnitude = digits.exactMagnitude { return isNegative && magnitude != 0 ? -magnitude : magnitude }
        return try slowNumber(bytes, start..<position)
    }

    /// The digits read so far, as far as 64 bits hold them, and the power of ten of their factor.
    private struct Digits {
        var value: UInt64 = 0
        var overflows = false
        var exponent = 0

        /// The number, when both factors are exact so that one operation rounds once.
        var exactMagnitude: Double? {
            guard !overflows, value < 1 << 53 else { return nil }
            if exponent == 0 || value == 0 { return Double(value) }
            if exponent > 0 { return exponent <= 22 ? Double(value) * powersOfTen[exponent] : nil }
            return exponent >= -22 ? Double(value) / powersOfTen[-exponent] : nil
        }
    }

    /// Reads at least one digit.
    @inline(__always)
    private mutating func readDigits(_ bytes: Span<UInt8>, into digits: inout Digits) throws(JSONError) {
        let first = position
        while position < bytes.count {
            let digit = bytes[position] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            // Above this, ten times the value plus a digit may exceed 64 bits; then the slow path is used.
            if digits.value > 1_000_000_000_000_000_000 { digits.overflows = true }
            digits.value = digits.value &* 10 &+ UInt64(digit)
            position += 1
        }
        guard position > first else { throw numberError(bytes) }
    }

    private mutating func readExponent(_ bytes: Span<UInt8>, into digits: inout Digits) throws(JSONError) {
        position += 1
        var isNegative = false
        let sign = byte(bytes)
        if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
            isNegative = sign == UInt8(ascii: "-")
            position += 1
        }
        let first = position
        var exponent = 0
        while position < bytes.count {
            let digit = bytes[position] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            if exponent < 100_000_000 { exponent = exponent * 10 + Int(digit) }
            position += 1
        }
        guard position > first else { throw numberError(bytes) }
        digits.exponent += isNegative ? -exponent : exponent
    }

    private func slowNumber(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(JSONError) -> Double {
        guard let number = Double(try utf8(bytes, range)) else { throw JSONError(.badNumber, at: range.lowerBound) }
        guard number.isFinite else { throw JSONError(.numberTooLarge, at: range.lowerBound) }
        return number == 0 ? 0 : number
    }

    @inline(__always)
    private func byte(_ bytes: Span<UInt8>) -> UInt8 {
        position < bytes.count ? bytes[position] : 0
    }

    private func numberError(_ bytes: Span<UInt8>) -> JSONError {
        JSONError(position < bytes.count ? .badNumber : .endedEarly, at: position)
    }
}

/// 10^0 to 10^22: all powers of ten that a double represents exactly.
private let powersOfTen: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
]

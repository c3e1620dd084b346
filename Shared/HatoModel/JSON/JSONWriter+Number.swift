/// Formats numbers as JavaScript's `Number.prototype.toString` does (ECMA-262, Number::toString): the fewest digits
/// that read back as the same number, as a plain decimal from 1e-6 up to below 1e21 and with an exponent beyond
/// (`10000000000000000`, `0.000001`, `1e-7`, `1e+21`).
///
/// Swift finds the same digits, but uses an exponent below 1e-4 and from 2^54 on, adds `.0` to integral numbers and a
/// zero to short exponents. Swift's plain decimals are used unchanged; other forms are reformatted.
extension JSONWriter {
    /// The lowest and the highest power of ten that are written plainly.
    private static let plainExponents = -6...20

    /// Appends a finite number without a comma before it. Integral numbers below 2^53 have a faster path.
    mutating func appendShortest(_ number: Double) {
        let text = number.description
        var utf8 = text.utf8[...]
        if utf8.first == UInt8(ascii: "-") {
            appendRaw(UInt8(ascii: "-"))
            utf8.removeFirst()
        }
        guard let mark = utf8.firstIndex(of: UInt8(ascii: "e")),
            let exponent = Int(text[text.utf8.index(after: mark)...])
        else {
            appendRaw(utf8.suffix(2).elementsEqual(".0".utf8) ? utf8.dropLast(2) : utf8)
            return
        }
        let digits = utf8[..<mark].filter { $0 != UInt8(ascii: ".") }
        if Self.plainExponents.contains(exponent) {
            appendPlain(digits[...], exponent)
        } else {
            appendRaw(utf8[..<mark])
            appendRaw(exponent < 0 ? "e" : "e+")
            appendRaw("\(exponent)")
        }
    }

    /// Appends digit, point, other digits times ten to the power of `exponent`, without the power.
    private mutating func appendPlain(_ digits: ArraySlice<UInt8>, _ exponent: Int) {
        let integral = exponent + 1
        if integral <= 0 {
            appendRaw("0.")
            appendRaw(repeatElement(UInt8(ascii: "0"), count: -integral))
            appendRaw(digits)
        } else {
            appendRaw(digits.prefix(integral))
            appendRaw(repeatElement(UInt8(ascii: "0"), count: max(0, integral - digits.count)))
            guard digits.count > integral else { return }
            appendRaw(UInt8(ascii: "."))
            appendRaw(digits.dropFirst(integral))
        }
    }
}

/// The ASCII form of an internationalised domain label, the part after `xn--` (RFC 3492).
///
/// The text has the ASCII characters, a hyphen, and then a number for each other character: its distance from the
/// previous one when all pairs of code point and position are counted in order.
public enum Punycode {
    private static let base = 36
    private static let thresholdMin = 1
    private static let thresholdMax = 26
    private static let skew = 38
    private static let damp = 700
    private static let biasAtStart = 72
    /// More than every position of every code point in a label.
    private static let numberMax = 1 << 28

    /// The label that a text stands for; nil when the text is not valid.
    public static func decoded(_ text: Substring) -> String? {
        var scalars: [Unicode.Scalar] = []
        var digits = text.unicodeScalars[...]
        if let hyphen = text.unicodeScalars.lastIndex(of: "-") {
            scalars = Array(text.unicodeScalars[..<hyphen])
            digits = text.unicodeScalars[text.unicodeScalars.index(after: hyphen)...]
        }
        guard scalars.allSatisfy(\.isASCII), !digits.isEmpty else { return nil }
        var (codePoint, place, bias) = (0x80, 0, biasAtStart)
        var isFirst = true
        while !digits.isEmpty {
            guard let delta = number(from: &digits, bias: bias) else { return nil }
            let count = scalars.count + 1
            bias = adapted(delta, count: count, isFirst: isFirst)
            isFirst = false
            place += delta
            codePoint += place / count
            place %= count
            guard let value = UInt32(exactly: codePoint), let scalar = Unicode.Scalar(value) else { return nil }
            scalars.insert(scalar, at: place)
            place += 1
        }
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    /// A number of digits with increasing weights; the first digit below its threshold ends it (RFC 3492 §3.3).
    private static func number(from digits: inout Substring.UnicodeScalarView, bias: Int) -> Int? {
        var (number, weight, position) = (0, 1, base)
        while let digit = digits.popFirst().flatMap(value) {
            number += digit * weight
            let threshold = min(max(position - bias, thresholdMin), thresholdMax)
            if digit < threshold { return number }
            weight *= base - threshold
            position += base
            guard number < numberMax, weight < numberMax else { return nil }
        }
        return nil
    }

    /// The text for a label; nil when the label is longer than a label of a domain can be.
    public static func encoded(_ label: String) -> String? {
        let scalars = Array(label.unicodeScalars)
        guard scalars.count <= 63 else { return nil }
        var text = String(String.UnicodeScalarView(scalars.filter(\.isASCII)))
        var handled = text.unicodeScalars.count
        if handled > 0 { text += "-" }
        var (codePoint, delta, bias) = (UInt32(0x80), 0, biasAtStart)
        var isFirst = true
        while handled < scalars.count {
            guard let next = scalars.lazy.map(\.value).filter({ $0 >= codePoint }).min() else { return nil }
            delta += Int(next - codePoint) * (handled + 1)
            guard delta < numberMax else { return nil }
            codePoint = next
            for scalar in scalars {
                if scalar.value < codePoint { delta += 1 }
                guard scalar.value == codePoint else { continue }
                append(delta, bias: bias, to: &text)
                bias = adapted(delta, count: handled + 1, isFirst: isFirst)
                isFirst = false
                delta = 0
                handled += 1
            }
            delta += 1
            codePoint += 1
        }
        return text
    }

    private static func append(_ number: Int, bias: Int, to text: inout String) {
        var (rest, position) = (number, base)
        while true {
            let threshold = min(max(position - bias, thresholdMin), thresholdMax)
            if rest < threshold { break }
            text.append(digit(threshold + (rest - threshold) % (base - threshold)))
            rest = (rest - threshold) / (base - threshold)
            position += base
        }
        text.append(digit(rest))
    }

    private static func digit(_ value: Int) -> Character {
        let digits: StaticString = "abcdefghijklmnopqrstuvwxyz0123456789"
        return Character(UnicodeScalar(digits.utf8Start[value]))
    }

    private static func adapted(_ delta: Int, count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var bias = 0
        while delta > (base - thresholdMin) * thresholdMax / 2 {
            delta /= base - thresholdMin
            bias += base
        }
        return bias + (base - thresholdMin + 1) * delta / (delta + skew)
    }

    private static func value(_ digit: Unicode.Scalar) -> Int? {
        switch digit {
        case "a"..."z": Int(digit.value - Unicode.Scalar("a").value)
        case "A"..."Z": Int(digit.value - Unicode.Scalar("A").value)
        case "0"..."9": Int(digit.value - Unicode.Scalar("0").value) + 26
        default: nil
        }
    }
}

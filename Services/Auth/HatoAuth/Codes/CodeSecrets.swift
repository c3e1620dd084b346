import Crypto
import HatoIdentity
import HatoModel

/// The two forms of a code, made of its record by a key of the service: neither the record nor the mail queue has them,
/// and only this service can make them.
struct CodeSecrets: Sendable {
    static let secretBytes = 32

    private let key: SymmetricKey
    let digitCount: Int

    /// - Parameter serviceKey: the key of refresh tokens, from which the key of codes is derived.
    init(serviceKey: [UInt8], digitCount: Int) {
        let derived = HMAC<SHA256>.authenticationCode(for: Array("codes".utf8), using: SymmetricKey(data: serviceKey))
        key = SymmetricKey(data: Array(derived))
        self.digitCount = digitCount
    }

    /// The long form: the id of the record and 256 bits, as 64 characters of base64url.
    func text(_ code: CodeRecord) -> String { Base64.url.encode(code.id + secret(code)) }

    /// Nil for a code without digits.
    func digits(_ code: CodeRecord) -> String? {
        guard code.digitsUntil != nil else { return nil }
        // Of 64 bits: no number of digits is more likely than another by more than one in a billion.
        let number = digest("digits", code).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let limit = (0..<digitCount).reduce(UInt64(1)) { power, _ in power * 10 }
        let text = String(number % limit)
        return String(repeating: "0", count: digitCount - text.utf8.count) + text
    }

    /// In constant time.
    func isRight(_ presented: [UInt8], of code: CodeRecord) -> Bool { ConstantTime.isSame(presented, secret(code)) }

    /// In constant time; false for a code without digits.
    func isRight(digits presented: String, of code: CodeRecord) -> Bool {
        ConstantTime.isSame(Array(presented.utf8), Array((digits(code) ?? "").utf8))
    }

    private func secret(_ code: CodeRecord) -> [UInt8] { digest("link", code) }

    /// Of everything in the record that never changes: a code for one purpose, account or address is none for another.
    private func digest(_ form: String, _ code: CodeRecord) -> [UInt8] {
        var record = code
        record.tries = 0
        let input = Array("\(form) ".utf8) + code.id + record.bytes
        return Array(HMAC<SHA256>.authenticationCode(for: input, using: key))
    }
}

/// A code as a caller presents it.
enum PresentedCode: Sendable, Hashable {
    case digits(String)
    case long(id: [UInt8], secret: [UInt8])

    private static let bytesMax = 256

    /// Nil for what is no code in either form.
    init?(_ text: String, digitCount: Int) {
        guard text.utf8.count <= Self.bytesMax else { return nil }
        if let digits = Self.digits(text) {
            guard digits.utf8.count == digitCount else { return nil }
            self = .digits(digits)
            return
        }
        let length = CodeRecord.idBytes + CodeSecrets.secretBytes
        // Mail programs add blanks and line ends to what is copied.
        let text = text.filter { !$0.isWhitespace }
        guard text.utf8.count == length * 4 / 3, let bytes = Base64.url.decode(text.utf8), bytes.count == length else {
            return nil
        }
        self = .long(
            id: Array(bytes[..<CodeRecord.idBytes]), secret: Array(bytes[CodeRecord.idBytes...]))
    }

    /// The digits of a text of digits, full-width ones too, white space and hyphens; nil for another text.
    private static func digits(_ text: String) -> String? {
        var digits = ""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x30...0x39: digits.unicodeScalars.append(scalar)
            case 0xFF10...0xFF19: digits.append(String(scalar.value - 0xFF10))
            case 0x2D, 0xFF0D, 0x2010...0x2015, 0x2212, 0x30FC: continue
            default: if scalar.properties.isWhitespace { continue } else { return nil }
            }
        }
        return digits.isEmpty ? nil : digits
    }
}

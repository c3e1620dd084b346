/// The parameters of a query or of a form (`application/x-www-form-urlencoded`), in their order.
///
/// Read as browsers do: `+` is a blank, a `%` without two hexadecimal digits stands for itself.
struct AccountParameters: Sendable, Hashable, SecretHolder {
    private(set) var list: [(name: String, value: String)] = []

    static func == (left: Self, right: Self) -> Bool {
        left.list.elementsEqual(right.list) { $0.name == $1.name && $0.value == $1.value }
    }

    func hash(into hasher: inout Hasher) {
        for (name, value) in list {
            hasher.combine(name)
            hasher.combine(value)
        }
    }

    init(_ text: String) { self.init(Array(text.utf8)) }

    init(_ bytes: [UInt8]) {
        for pair in bytes.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? Self.decoded(parts[1]) : ""
            list.append((Self.decoded(parts[0]), value))
        }
    }

    /// The first value of this name.
    subscript(name: String) -> String? { list.first { $0.name == name }?.value }

    /// These, and in front of them others, of which the last value of a name is the first.
    func overridden(by others: [AccountParameters]) -> AccountParameters {
        var all = self
        all.list = others.flatMap(\.list).reversed() + list
        return all
    }

    var description: String { "AccountParameters(\(list.count))" }

    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        AccountPercentCoding.decoded(bytes, plusIsBlank: true)
    }
}

/// Percent codes of URLs (RFC 3986 §2.1).
enum AccountPercentCoding {
    /// Decodes; what is no code stands for itself, what is no UTF-8 becomes U+FFFD.
    static func decoded(_ bytes: some Sequence<UInt8>, plusIsBlank: Bool = false) -> String {
        let bytes = Array(bytes)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < bytes.count, let high = digit(bytes[index + 1]),
                let low = digit(bytes[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(plusIsBlank && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
                index += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Encodes all but letters, digits, `-`, `_` and `.`.
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                result.append(byte)
            default:
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

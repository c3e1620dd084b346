/// The name of a child in the tree: 1 to 768 bytes of UTF-8 without `. # $ / [ ]` and control characters (spec
/// realtime-database §1).
///
/// Keys are equal when their bytes are (no Unicode normalisation, unlike `String`) and ordered by `KeyOrder`.
public struct TreeKey: Sendable {
    /// The text of the key.
    public let text: String

    /// Throws an error that names the key and the rule for keys.
    public init(_ text: String) throws(ArgumentError) {
        if let problem = TreeKey.problem(text) {
            throw ArgumentError(
                reason: "invalid_key",
                "The key \(TreeKey.quoted(text)) \(problem); a key is 1 to \(TreeLimits.keyBytesMax) bytes of UTF-8 "
                    + "without . # $ / [ ] and control characters, e.g. \"message-1\"")
        }
        self.text = text
    }

    /// Takes a text that is known to be a valid key: read from rows, or generated.
    package init(unchecked text: String) { self.text = text }

    public init(_ key: PushKey) { text = key.text }

    /// The key of an array's element.
    public init(index: Int) { text = String(index) }

    /// The problem of `text` as a key, as the end of a sentence; nil when it is valid.
    public static func problem(_ text: String) -> String? {
        let bytes = text.utf8.span
        if bytes.isEmpty { return "is empty" }
        if bytes.count > TreeLimits.keyBytesMax { return "has \(bytes.count) bytes" }
        for index in bytes.indices {
            switch bytes[index] {
            case 0..<0x20, 0x7F: return "contains a control character"
            case UInt8(ascii: "."), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "/"), UInt8(ascii: "["),
                UInt8(ascii: "]"):
                return "contains \"\(Character(Unicode.Scalar(bytes[index])))\""
            default: continue
            }
        }
        return nil
    }

    /// `text` in quotation marks, shortened for messages.
    static func quoted(_ text: String) -> String { "\"\(text.shortened(to: 80))\"" }
}

extension TreeKey: Hashable {
    public static func == (left: TreeKey, right: TreeKey) -> Bool { left.text.hasSameBytes(as: right.text) }

    public func hash(into hasher: inout Hasher) {
        text.utf8.span.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

extension TreeKey: Comparable {
    public static func < (left: TreeKey, right: TreeKey) -> Bool { KeyOrder.compare(left.text, right.text) < 0 }
}

extension TreeKey: CustomStringConvertible {
    public var description: String { text }
}

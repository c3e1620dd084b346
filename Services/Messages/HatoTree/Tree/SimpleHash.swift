import Crypto
public import HatoModel

/// A hash by which nodes are compared, priorities included (spec realtime-database §8.5): base64 of SHA-1.
public enum SimpleHash {
    /// The etag of a missing node.
    public static let nullEtag = "null_etag"

    /// The etag of a node (protocol §5).
    public static func etag(_ node: TreeNode) -> String {
        node.isEmpty ? nullEtag : hash(node)
    }

    /// Whether a text has the form of an etag: `nullEtag`, or 20 bytes in base64.
    public static func isEtag(_ text: String) -> Bool {
        if text == nullEtag { return true }
        let bytes = text.utf8
        return bytes.count == 28 && bytes.last == UInt8(ascii: "=") && bytes.dropLast().allSatisfy(isBase64)
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }

    /// The hash of a node; the empty text for an empty node.
    public static func hash(_ node: TreeNode) -> String {
        var text: [UInt8] = []
        switch node {
        case .empty: return ""
        case .leaf(let leaf, let priority):
            append(priority, to: &text)
            append(leaf, to: &text)
        case .object(let children, let priority):
            append(priority, to: &text)
            for child in ordered(children) {
                text.append(UInt8(ascii: ":"))
                text.append(contentsOf: child.key.text.utf8)
                text.append(UInt8(ascii: ":"))
                text.append(contentsOf: hash(child.node).utf8)
            }
        }
        return base64(Insecure.SHA1.hash(data: text))
    }

    /// The children by priority, then key; they are given by key, and usually none has a priority.
    private static func ordered(_ children: TreeChildren) -> [TreeChild] {
        guard children.contains(where: { $0.node.priority != nil }) else { return Array(children) }
        return children.sorted { left, right in
            let order = ValueOrder.compare(left.node.priority, right.node.priority)
            return order == 0 ? left.key < right.key : order < 0
        }
    }

    private static func append(_ priority: TreePriority?, to text: inout [UInt8]) {
        guard let priority else { return }
        text.append(contentsOf: "priority:".utf8)
        append(priority.leaf, to: &text)
        text.append(UInt8(ascii: ":"))
    }

    private static func append(_ leaf: TreeLeaf, to text: inout [UInt8]) {
        switch leaf {
        case .bool(let value):
            text.append(contentsOf: (value ? "boolean:true" : "boolean:false").utf8)
        case .number(let value):
            text.append(contentsOf: "number:".utf8)
            withUnsafeBytes(of: value.bitPattern.bigEndian) { bytes in
                for byte in bytes {
                    text.append(hexDigits[Int(byte >> 4)])
                    text.append(hexDigits[Int(byte & 15)])
                }
            }
        case .string(let value):
            text.append(contentsOf: "string:".utf8)
            text.append(contentsOf: value.utf8)
        }
    }

    private static func base64(_ digest: Insecure.SHA1.Digest) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(28)
        var bits: UInt32 = 0
        var count = 0
        for byte in digest {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(base64Digits[Int(bits >> UInt32(count) & 63)])
            }
        }
        // 20 bytes leave 4 bits, and one pad.
        text.append(base64Digits[Int(bits << 2 & 63)])
        text.append(UInt8(ascii: "="))
        return String(decoding: text, as: UTF8.self)
    }

    private static let hexDigits = Array("0123456789abcdef".utf8)
    private static let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}

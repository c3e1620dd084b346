import HatoModel

/// A field of a change: `after.senderName`, `before.room.title`, or `after` itself where the node is a leaf.
struct FieldPath: Hashable, Sendable {
    enum Side: String, Sendable {
        case before
        case after
    }

    var side: Side
    var keys: [String]

    init(side: Side, keys: [String]) {
        self.side = side
        self.keys = keys
    }

    /// Nil when the text names no field: keys of the tree hold no dots, so a dot always parts two of them.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard let first = parts.first, let side = Side(rawValue: first), !parts.dropFirst().contains("") else {
            return nil
        }
        self.side = side
        keys = Array(parts.dropFirst())
    }

    /// The text of the field's value: of a string itself, of a number or boolean as JSON writes it. Nil when it is
    /// missing or no leaf.
    func text(in change: FeedChange) -> String? {
        var value = side == .before ? change.before : change.after
        for key in keys {
            guard let child = value?[key] else { return nil }
            value = child
        }
        // A leaf with a priority comes as an object in export form.
        switch value?[".value"] ?? value {
        case .string(let text): return text
        case .number(let number):
            var writer = JSONWriter()
            writer.write(number)
            return String(decoding: writer.bytes, as: UTF8.self)
        case .bool(let bool): return bool ? "true" : "false"
        case .null, .array, .object, nil: return nil
        }
    }
}

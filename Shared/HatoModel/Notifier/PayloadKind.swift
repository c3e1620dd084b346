/// Why a payload is of no use: nothing happens then, on the device and in the notifier.
public enum PayloadError: Error, Sendable, Hashable {
    /// The payload names no type, or one that is not known.
    case invalidType
    /// This field is missing though it is required, or its value is not of its kind.
    case invalidData(field: String)

    /// `invalidType` or `invalidData`, the reason on the wire.
    public var reason: String {
        switch self {
        case .invalidType: "invalidType"
        case .invalidData: "invalidData"
        }
    }

    /// The field of `invalidData`.
    public var field: String? {
        if case .invalidData(let field) = self { field } else { nil }
    }
}

extension Notifier {
    /// What the text of a field must be. The empty text is of no kind.
    public enum PayloadKind: String, FieldChoice {
        /// 1 to 1,000 characters (code points).
        case string
        /// `-?(0|[1-9][0-9]*)`, from -(2^53-1) to 2^53-1.
        case int
        /// `true` or `false`.
        case bool
        /// A key that the tree may have.
        case id
        /// An absolute https URL of at most 2,048 bytes.
        case url
        /// Milliseconds since 1970 in digits, at most 2^53-1.
        case date

        /// Whether `text` is of this kind.
        public func accepts(_ text: String) -> Bool {
            switch self {
            case .string:
                !text.isEmpty && text.utf8.count <= 4 * Self.charactersMax
                    && text.unicodeScalars.count <= Self.charactersMax
            case .int: Self.int(text) != nil
            case .bool: text == "true" || text == "false"
            case .id: TreeKey.problem(text) == nil
            case .url: Self.isURL(text)
            case .date: Self.digits(text[...]) != nil
            }
        }

        private static let charactersMax = 1_000
        private static let urlBytesMax = 2_048
        private static let intMax: Int64 = 1 << 53 - 1

        static func int(_ text: String) -> Int64? {
            guard text.hasPrefix("-") else { return digits(text[...]) }
            return digits(text.dropFirst()).map { -$0 }
        }

        private static func digits(_ text: Substring) -> Int64? {
            let bytes = text.utf8
            guard (1...16).contains(bytes.count), bytes.allSatisfy({ (0x30...0x39).contains($0) }),
                bytes.count == 1 || bytes.first != 0x30, let number = Int64(text), number <= intMax
            else { return nil }
            return number
        }

        /// The scheme, a host with an optional port and no user, then printable ASCII.
        private static func isURL(_ text: String) -> Bool {
            let scheme = "https://"
            guard text.utf8.count <= urlBytesMax,
                text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !unsafeInURL.contains($0) }),
                text.prefix(scheme.count).lowercased() == scheme
            else { return false }
            let authority = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            let host: Substring
            if authority.hasPrefix("[") {
                guard let end = authority.firstIndex(of: "]") else { return false }
                let address = authority[..<end].dropFirst()
                guard address.contains(":"), address.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else {
                    return false
                }
                host = authority[...end]
            } else {
                host = authority.prefix { $0 != ":" }
                let labels = host.split(separator: ".", omittingEmptySubsequences: false)
                guard labels.allSatisfy(isLabel) else { return false }
            }
            let port = authority[host.endIndex...]
            if port.isEmpty { return true }
            guard port.first == ":", port.utf8.count <= 6, let number = digits(port.dropFirst()) else { return false }
            return (1...65_535).contains(number)
        }

        private static let unsafeInURL = Swift.Set(#""<>\^`{|}"#.utf8)

        private static func isLabel(_ label: Substring) -> Bool {
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    (0x61...0x7A).contains(byte) || (0x41...0x5A).contains(byte) || (0x30...0x39).contains(byte)
                        || byte == 0x2D || byte == 0x5F
                }
        }
    }
}

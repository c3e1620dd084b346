/// A pattern of paths such as `/chats/{chat}/messages/{id}`: a name in braces matches any one key.
///
/// Followers and triggers select paths with it; `IndexDefinition` selects its collections with it.
public struct FeedPattern: Sendable, Hashable {
    /// A part of a pattern.
    public enum Segment: Sendable, Hashable {
        case key(TreeKey)
        /// Any one key, with the name of its parameter.
        case any(String)
    }

    /// The parts from the root down.
    public let segments: [Segment]

    public init(segments: [Segment]) { self.segments = segments }

    /// The relation of a path to a pattern. Parameters are in the order of the pattern.
    public enum Match: Sendable, Hashable {
        /// The path matches the pattern.
        case exact([Parameter])
        /// The path is inside a matching node, which is its first `depth` keys.
        case below([Parameter], depth: Int)
        /// Matching nodes may be inside the path; with the parameters that the path determines.
        case above([Parameter])
    }

    /// A wildcard and the key it matched.
    public struct Parameter: Sendable, Hashable {
        /// The name in braces.
        public var name: String
        /// The matched key.
        public var key: TreeKey

        public init(_ name: String, _ key: TreeKey) {
            self.name = name
            self.key = key
        }
    }

    /// Nil when neither the path, nor a node above or below it, can match.
    public func match(_ path: TreePath) -> Match? {
        var parameters: [Parameter] = []
        for (segment, key) in zip(segments, path.keys) {
            switch segment {
            case .key(let name):
                guard name == key else { return nil }
            case .any(let name):
                parameters.append(Parameter(name, key))
            }
        }
        if path.keys.count == segments.count { return .exact(parameters) }
        if path.keys.count > segments.count { return .below(parameters, depth: segments.count) }
        return .above(parameters)
    }

    /// The literal keys before the first name in braces.
    public var fixedPrefix: [TreeKey] {
        var keys: [TreeKey] = []
        for segment in segments {
            guard case .key(let key) = segment else { break }
            keys.append(key)
        }
        return keys
    }
}

extension FeedPattern {
    private static let example = "/chats/{chat}/messages/{id}"

    /// Reads a pattern, e.g. `/chats/{chat}/messages/{id}`: `/` and at most 32 keys or names in braces, each name once.
    ///
    /// - Throws: `ArgumentError` with the reason `invalid_pattern` when the text is no pattern.
    public init(_ text: String) throws(ArgumentError) {
        guard text.hasPrefix("/") else { throw Self.error("A pattern begins with /") }
        var segments: [Segment] = []
        var names: Set<String> = []
        for part in text.split(separator: "/", omittingEmptySubsequences: true) {
            if part.first == "{" || part.last == "}" {
                let name = part.dropFirst().dropLast()
                guard part.first == "{", part.last == "}", Self.isName(name) else {
                    throw Self.error(
                        "\"\(part)\" is no name in braces: letters, digits and _, not beginning with a digit")
                }
                guard names.insert(String(name)).inserted else {
                    throw Self.error("The name {\(name)} occurs twice")
                }
                segments.append(.any(String(name)))
            } else {
                guard let key = try? TreeKey(String(part)) else { throw Self.error("\"\(part)\" is no key") }
                segments.append(.key(key))
            }
        }
        guard segments.count <= TreeLimits.depthMax else {
            throw Self.error("A pattern has at most \(TreeLimits.depthMax) keys")
        }
        self.init(segments: segments)
    }

    private static func error(_ message: String) -> ArgumentError {
        ArgumentError(reason: "invalid_pattern", "\(message), e.g. \(example)")
    }

    private static func isName(_ text: Substring) -> Bool {
        guard let first = text.unicodeScalars.first, !("0"..."9").contains(first) else { return false }
        return text.unicodeScalars.allSatisfy {
            switch $0 {
            case "a"..."z", "A"..."Z", "0"..."9", "_": true
            default: false
            }
        }
    }
}

extension FeedPattern: ExpressibleByStringLiteral {
    /// For patterns in source code; an invalid one is a programmer error and traps.
    public init(stringLiteral text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure(error.message)
        }
    }
}

extension FeedPattern: CustomStringConvertible {
    /// As written, e.g. `/chats/{chat}/messages/{id}`.
    public var description: String {
        if segments.isEmpty { return "/" }
        return segments.map {
            switch $0 {
            case .key(let key): "/\(key)"
            case .any(let name): "/{\(name)}"
            }
        }.joined()
    }
}

extension FeedPattern: FieldText {}

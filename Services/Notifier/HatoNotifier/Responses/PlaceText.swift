import HatoModel

/// A text of an effect with places: `{uid}`, `{name}`, `{text}`, `{thread}` and `{data.x}`; `{{` and `}}` are braces.
struct PlaceText: Sendable, Hashable {
    /// What a response fills.
    enum Place: Sendable, Hashable {
        case uid, name, text, thread
        case data(String)

        init?(_ name: String) {
            switch name {
            case "uid": self = .uid
            case "name": self = .name
            case "text": self = .text
            case "thread": self = .thread
            default:
                guard name.hasPrefix("data."), name.utf8.count > 5 else { return nil }
                self = .data(String(name.dropFirst(5)))
            }
        }

        /// The name under which records keep what fills it.
        var name: String {
            switch self {
            case .uid: "uid"
            case .name: "name"
            case .text: "text"
            case .thread: "thread"
            case .data(let field): "data.\(field)"
            }
        }
    }

    private enum Part: Sendable, Hashable {
        case literal(String)
        case place(Place)
    }

    private var parts: [Part] = []

    /// Throws when a brace has no partner, or a place names nothing.
    init(_ text: String) throws(ArgumentError) {
        var (literal, rest) = ("", Substring(text))
        while let character = rest.popFirst() {
            switch character {
            case "{" where rest.first == "{", "}" where rest.first == "}":
                literal.append(character)
                rest.removeFirst()
            case "{":
                guard let end = rest.firstIndex(of: "}") else { throw Self.unbalanced(text) }
                guard let place = Place(String(rest[..<end])) else {
                    throw ArgumentError(
                        reason: "invalid_template",
                        "{\(rest[..<end].prefix(80))} names nothing here; there are {uid}, {name}, {text}, {thread}, "
                            + "{data.x}")
                }
                if !literal.isEmpty { parts.append(.literal(literal)) }
                literal = ""
                parts.append(.place(place))
                rest = rest[rest.index(after: end)...]
            case "}": throw Self.unbalanced(text)
            default: literal.append(character)
            }
        }
        if !literal.isEmpty { parts.append(.literal(literal)) }
    }

    private static func unbalanced(_ text: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_template",
            "A brace has no partner in \"\(text.prefix(80))\"; {{ and }} stand for braces themselves")
    }

    /// The places in it.
    var places: [Place] {
        parts.compactMap { part in
            if case .place(let place) = part { return place }
            return nil
        }
    }

    /// What is missing is filled with nothing.
    func filled(with fills: [String: String]) -> String {
        var text = ""
        for part in parts {
            switch part {
            case .literal(let literal): text += literal
            case .place(let place): text += fills[place.name] ?? ""
            }
        }
        return text
    }

    /// A path or a part of it: each place fills one key or a part of it, and adds none. Throws `invalid_path`.
    func filledPath(with fills: [String: String]) throws(ArgumentError) -> TreePath {
        for place in places {
            guard let fill = fills[place.name], TreeKey.problem(fill) == nil else {
                throw ArgumentError(reason: "invalid_path", "{\(place.name)} fills the path with no key")
            }
        }
        return try TreePath(filled(with: fills))
    }
}

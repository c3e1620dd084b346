import HatoModel

/// A text with places to fill: `{after.senderName}さんからのメッセージ`.
///
/// A place names a field of the change (`{after.text}`, `{before.title}`), what a wildcard of the pattern matched
/// (`{chat}`), the `{path}`, or the `{author.name}`. `{a|b}` is the first of them that is not empty. What is missing or
/// no leaf is filled with nothing. `{{` and `}}` stand for braces.
struct Template: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case text(String)
        /// The first that is not empty.
        case first(of: [Place])
    }

    private enum Place: Hashable, Sendable {
        case field(FieldPath)
        case parameter(String)
        case path
        case authorName

        func text(in change: FeedChange) -> String? {
            switch self {
            case .field(let field): field.text(in: change)
            case .parameter(let name): change.parameters[name]
            case .path: change.path
            case .authorName: change.authorName
            }
        }
    }

    private var parts: [Part] = []

    /// Throws when a brace has no partner, or a place names nothing that a change has.
    init(_ text: String, parameters: [String]) throws(ArgumentError) {
        var literal = ""
        var rest = Substring(text)
        while let character = rest.popFirst() {
            switch character {
            case "{" where rest.first == "{", "}" where rest.first == "}":
                literal.append(character)
                rest.removeFirst()
            case "{":
                guard let end = rest.firstIndex(of: "}") else { throw Template.unbalanced(text) }
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(.first(of: try Template.places(String(rest[..<end]), parameters)))
                rest = rest[rest.index(after: end)...]
            case "}": throw Template.unbalanced(text)
            default: literal.append(character)
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
    }

    private static func places(_ names: String, _ parameters: [String]) throws(ArgumentError) -> [Place] {
        // A name of the pattern may hold the sign that stands between names.
        if parameters.contains(names) { return [.parameter(names)] }
        var places: [Place] = []
        for name in names.split(separator: "|", omittingEmptySubsequences: false) {
            places.append(try place(String(name), parameters))
        }
        return places
    }

    private static func place(_ name: String, _ parameters: [String]) throws(ArgumentError) -> Place {
        if parameters.contains(name) { return .parameter(name) }
        if let field = FieldPath(name) { return .field(field) }
        if name == "path" { return .path }
        if name == "author.name" { return .authorName }
        let known = parameters.map { "{\($0)}" } + ["{after.…}", "{before.…}", "{path}", "{author.name}"]
        throw ArgumentError(
            reason: "invalid_template", "{\(name)} names nothing here; there are \(known.joined(separator: ", "))")
    }

    private static func unbalanced(_ text: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_template", "A brace has no partner in \"\(text)\"; {{ and }} stand for braces themselves")
    }

    /// Whether it is empty whatever it is filled with.
    var isEmpty: Bool { parts.isEmpty }

    private var places: [Place] {
        parts.flatMap { part -> [Place] in
            if case .first(let places) = part { return places }
            return []
        }
    }

    var fields: [FieldPath] {
        places.compactMap { place -> FieldPath? in
            if case .field(let field) = place { return field }
            return nil
        }
    }

    var namesAuthor: Bool { places.contains(.authorName) }

    /// The text when it has no places.
    var literal: String? {
        var text = ""
        for part in parts {
            guard case .text(let literal) = part else { return nil }
            text += literal
        }
        return text
    }

    /// At most so many bytes of UTF-8, cut like `String.cut(toBytes:)`.
    func filled(with change: FeedChange, toBytes bytesMax: Int) -> String {
        filled(with: change, until: bytesMax).cut(toBytes: bytesMax)
    }

    /// Whether nothing of it is missing, and it has at most so many bytes of UTF-8.
    func isWhole(with change: FeedChange, in bytesMax: Int) -> Bool {
        !fields.contains { change.lacks($0) } && filled(with: change, until: bytesMax).utf8.count <= bytesMax
    }

    /// Whole, or a beginning of it that has more bytes of UTF-8 than this: a text that names a field many times does
    /// not become many times as long as the field.
    func filled(with change: FeedChange, until bytesMax: Int) -> String {
        var text = ""
        for part in parts {
            guard text.utf8.count <= bytesMax else { break }
            switch part {
            case .text(let literal): text += literal
            case .first(let places):
                for place in places {
                    guard let value = place.text(in: change), !value.isEmpty else { continue }
                    text += value.beginning(bytesMax)
                    break
                }
            }
        }
        return text
    }
}

extension String {
    /// Whole, or a beginning of it that has more bytes of UTF-8 than this.
    fileprivate func beginning(_ bytesMax: Int) -> Substring {
        // Some characters more, so that a cut at `bytesMax` meets no part of one.
        let end = utf8.index(startIndex, offsetBy: max(0, bytesMax) + 1_024, limitedBy: endIndex) ?? endIndex
        return self[..<end]
    }

    /// At most so many bytes of UTF-8; cut between characters, with an ellipsis where something is gone.
    func cut(toBytes bytesMax: Int) -> String {
        guard utf8.count > bytesMax else { return self }
        let ellipsis = "…"
        var room = bytesMax - ellipsis.utf8.count
        var end = startIndex
        while end < endIndex {
            let next = index(after: end)
            let size = utf8.distance(from: end, to: next)
            guard size <= room else { break }
            room -= size
            end = next
        }
        return String(self[..<end]) + ellipsis
    }
}

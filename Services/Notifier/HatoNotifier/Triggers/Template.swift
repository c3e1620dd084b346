import HatoModel

/// A text with places to fill: `{after.senderName}さんからのメッセージ`.
///
/// A place names a field of the change (`{after.text}`, `{before.title}`), what a wildcard of the pattern matched
/// (`{chat}`), or the `{path}`. What is missing or no leaf is filled with nothing. `{{` and `}}` stand for braces.
struct Template: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case text(String)
        case field(FieldPath)
        case parameter(String)
        case path
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
                parts.append(try Template.placeholder(String(rest[..<end]), parameters))
                rest = rest[rest.index(after: end)...]
            case "}": throw Template.unbalanced(text)
            default: literal.append(character)
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
    }

    private static func placeholder(_ name: String, _ parameters: [String]) throws(ArgumentError) -> Part {
        if parameters.contains(name) { return .parameter(name) }
        if let field = FieldPath(name) { return .field(field) }
        if name == "path" { return .path }
        let known = parameters.map { "{\($0)}" } + ["{after.…}", "{before.…}", "{path}"]
        throw ArgumentError(
            reason: "invalid_template", "{\(name)} names nothing here; there are \(known.joined(separator: ", "))")
    }

    private static func unbalanced(_ text: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_template", "A brace has no partner in \"\(text)\"; {{ and }} stand for braces themselves")
    }

    /// Whether it is empty whatever it is filled with.
    var isEmpty: Bool { parts.isEmpty }

    var fields: [FieldPath] {
        parts.compactMap { if case .field(let field) = $0 { field } else { nil } }
    }

    /// At most so many bytes of UTF-8, cut like `String.cut(toBytes:)`.
    func filled(with change: FeedChange, toBytes bytesMax: Int) -> String {
        filled(with: change, until: bytesMax).cut(toBytes: bytesMax)
    }

    /// Whole, or a beginning of it that has more bytes of UTF-8 than this: a text that names a field many times does
    /// not become many times as long as the field.
    func filled(with change: FeedChange, until bytesMax: Int) -> String {
        var text = ""
        for part in parts {
            guard text.utf8.count <= bytesMax else { break }
            switch part {
            case .text(let literal): text += literal
            case .field(let field): text += (field.text(in: change) ?? "").beginning(bytesMax)
            case .parameter(let name): text += change.parameters[name] ?? ""
            case .path: text += change.path
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

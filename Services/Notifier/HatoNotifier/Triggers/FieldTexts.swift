import HatoModel

/// Title and body of a type's notifications, with places for fields of the data: `{search_keyword}`.
struct FieldTexts: Sendable, Hashable {
    private enum Part: Sendable, Hashable {
        case text(String)
        case field(String)
    }

    private var title: [Part]?
    private var body: [Part]?

    /// Throws when a brace has no partner, or a place names no field of the type.
    init(_ text: Notifier.NotificationText, of type: Notifier.PayloadType) throws(ArgumentError) {
        if let title = text.title { self.title = try FieldTexts.parts(title, type) }
        if let body = text.body { self.body = try FieldTexts.parts(body, type) }
    }

    private static func parts(_ text: String, _ type: Notifier.PayloadType) throws(ArgumentError) -> [Part] {
        var (parts, literal, rest): ([Part], String, Substring) = ([], "", Substring(text))
        while let character = rest.popFirst() {
            switch character {
            case "{" where rest.first == "{", "}" where rest.first == "}":
                literal.append(character)
                rest.removeFirst()
            case "{":
                guard let end = rest.firstIndex(of: "}") else { throw unbalanced(text) }
                let name = String(rest[..<end])
                guard type.kind(of: name) != nil else {
                    throw ArgumentError(
                        reason: "invalid_template",
                        "{\(name)} names no field of the type; add it to required or optional")
                }
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(.field(name))
                rest = rest[rest.index(after: end)...]
            case "}": throw unbalanced(text)
            default: literal.append(character)
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        return parts
    }

    private static func unbalanced(_ text: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_template", "A brace has no partner in \"\(text)\"; {{ and }} stand for braces themselves")
    }

    /// A field that is not there is filled with nothing; what is too long is cut.
    func filled(with data: [String: String], _ limits: NotifierLimits) -> Notifier.NotificationText {
        .init(
            title: title.map { FieldTexts.filled($0, data, limits.titleBytesMax) },
            body: body.map { FieldTexts.filled($0, data, limits.bodyBytesMax) })
    }

    private static func filled(_ parts: [Part], _ data: [String: String], _ bytesMax: Int) -> String {
        var text = ""
        for part in parts where text.utf8.count <= bytesMax {
            switch part {
            case .text(let literal): text += literal
            case .field(let name): text += data[name] ?? ""
            }
        }
        return text.cut(toBytes: bytesMax)
    }
}

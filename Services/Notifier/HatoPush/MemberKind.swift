import HatoModel

/// What a member of a platform's own may be, where an administrator gives one (`platforms`).
indirect enum MemberKind: Sendable {
    case text
    case flag
    case integer(ClosedRange<Int64>)
    case number(ClosedRange<Double>)
    /// A text, or an integer of 0 or more.
    case textOrCount
    case choice([String])
    /// An absolute https URL.
    case link
    /// A text that a function takes; the words say what is right.
    case checked(String, @Sendable (String) -> Bool)
    case list(of: MemberKind)
    /// Texts by names of any kind.
    case texts
    /// An object with no other members.
    case object([String: MemberKind])
    /// A text, or an object with no other members.
    case textOr([String: MemberKind])
    /// Any object: its members are the app's.
    case any

    static let reason = "invalid_platform_member"

    /// Throws `invalid_platform_member`, with the path of what is wrong and what would be right.
    func check(_ value: JSONValue, at path: String) throws(ArgumentError) {
        switch self {
        case .list(let kind):
            guard let elements = value.array else { throw wrong(path) }
            for (index, element) in elements.enumerated() { try kind.check(element, at: "\(path)[\(index)]") }
        case .texts:
            guard let object = value.object else { throw wrong(path) }
            for member in object.members {
                try MemberKind.text.check(member.value, at: Self.path(path, member.name))
            }
        case .object(let kinds):
            guard let object = value.object else { throw wrong(path) }
            for member in object.members {
                let place = Self.path(path, member.name)
                guard let kind = kinds[member.name] else {
                    throw Self.error(
                        "\(place) is not known; \(path) has the members \(kinds.keys.sorted().joined(separator: ", "))")
                }
                try kind.check(member.value, at: place)
            }
        case .textOr(let kinds):
            guard value.string == nil else { return }
            guard value.object != nil else { throw wrong(path) }
            try MemberKind.object(kinds).check(value, at: path)
        default: if !takes(value) { throw wrong(path) }
        }
    }

    private func takes(_ value: JSONValue) -> Bool {
        switch self {
        case .text: value.string != nil
        case .flag: value.bool != nil
        case .integer(let range): value.integer.map(range.contains) ?? false
        case .number(let range): value.number.map(range.contains) ?? false
        case .textOrCount: value.string != nil || value.integer.map { $0 >= 0 } ?? false
        case .choice(let texts): value.string.map(texts.contains) ?? false
        case .link: value.string.map(Self.isLink) ?? false
        case .checked(_, let isRight): value.string.map(isRight) ?? false
        case .any, .object, .texts: value.object != nil
        case .textOr: value.string != nil || value.object != nil
        case .list: value.array != nil
        }
    }

    private var words: String {
        switch self {
        case .text: "a string"
        case .flag: "true or false"
        case .integer(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range): "a number from \(range.lowerBound) to \(range.upperBound)"
        case .textOrCount: "a string or an integer of 0 or more"
        case .choice(let texts): "one of \(texts.joined(separator: ", "))"
        case .link: "an absolute https URL"
        case .checked(let words, _): words
        case .list: "an array"
        case .any, .object: "an object"
        case .texts: "an object of strings"
        case .textOr: "a string or an object"
        }
    }

    private func wrong(_ path: String) -> ArgumentError { Self.error("\(path) should be \(words)") }

    static func error(_ message: String) -> ArgumentError { ArgumentError(reason: reason, message) }

    /// The names are the caller's, of any length.
    static func path(_ path: String, _ name: String) -> String { "\(path).\(String(name.prefix(64)))" }

    private static func isLink(_ text: String) -> Bool {
        text.hasPrefix("https://") && text.utf8.count > 8 && text.utf8.count <= 2_048
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

extension JSONObject {
    /// These members with those of `others` in their place: objects member by member, everything else as a whole.
    func merging(_ others: JSONObject) -> JSONObject {
        var merged = self
        for member in others.members {
            if case .object(let present)? = merged[member.name], case .object(let other) = member.value {
                merged[member.name] = .object(present.merging(other))
            } else {
                merged[member.name] = member.value
            }
        }
        return merged
    }
}

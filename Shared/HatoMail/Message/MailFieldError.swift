/// A value of a message or of a setting that cannot be used. It does not repeat the value, which may be a secret.
public struct MailFieldError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the field or of the setting, such as `subject` or `mail-url`.
    public var field: String
    /// What is wrong, and what would be right.
    public var problem: String

    public init(_ field: String, _ problem: String) {
        self.field = field
        self.problem = problem
    }

    public var description: String { "\(field) \(problem)" }
}

enum TextCheck {
    /// Throws for line breaks and other control characters, which end a header or a command.
    static func requireNoControl(_ text: String, _ field: String) throws(MailFieldError) {
        if text.unicodeScalars.contains(where: isControl) {
            throw MailFieldError(field, "must not contain line breaks or other control characters")
        }
    }

    static func requireBytes(_ text: String, max: Int, _ field: String) throws(MailFieldError) {
        if text.utf8.count > max { throw MailFieldError(field, "must have at most \(max) bytes") }
    }

    /// The line and paragraph separators of Unicode too, which some readers take for line breaks.
    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

import Foundation

extension MailAddress {
    /// Reads `name@example.com`, or `Name <name@example.com>`. Throws `MailFieldError`, which has the name of the
    /// `field`.
    public init(named text: String, field: String) throws(MailFieldError) {
        guard text.hasSuffix(">"), let start = text.lastIndex(of: "<") else {
            self = try MailAddress(text, field: field)
            return
        }
        let name = text[..<start].trimmingCharacters(in: .whitespaces)
        self = try MailAddress(
            String(text[text.index(after: start)...].dropLast()), displayName: name, field: field)
    }
}

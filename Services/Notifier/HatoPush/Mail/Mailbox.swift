import HatoMail
public import HatoModel

/// The mailbox of a user.
public struct Mailbox: Sendable, Hashable {
    let mail: MailAddress

    /// Throws `invalid_email` for a text that is no address of a mailbox.
    public init(_ address: String) throws(ArgumentError) {
        do { mail = try MailAddress(address, field: "the address") } catch {
            throw ArgumentError(reason: "invalid_email", error.description)
        }
    }

    /// `name@example.com`, with its domain in ASCII.
    public var address: String { mail.text }
}

import Foundation

/// The user name and the password for a server. Its description hides the password.
struct SMTPCredentials: Sendable, Hashable {
    let user: String
    let password: String

    /// Of each of both (RFC 4616).
    static let bytesMax = 255

    /// Throws for an empty text, and for control characters: PLAIN separates both by a null character.
    init(user: String, password: String) throws(MailFieldError) {
        for (text, field) in [(user, "mail-url"), (password, "mail-password-file")] {
            let what = field == "mail-url" ? "has a user name that" : "has a password that"
            guard (1...Self.bytesMax).contains(text.utf8.count),
                !text.unicodeScalars.contains(where: TextCheck.isControl)
            else {
                throw MailFieldError(
                    field, "\(what) is empty, longer than \(Self.bytesMax) bytes or has control characters")
            }
        }
        self.user = user
        self.password = password
    }

    /// The response for PLAIN (RFC 4616).
    var plain: String { Data("\u{0}\(user)\u{0}\(password)".utf8).base64EncodedString() }
    /// The responses for LOGIN: the user name, then the password.
    var login: (user: String, password: String) {
        (Data(user.utf8).base64EncodedString(), Data(password.utf8).base64EncodedString())
    }

    /// The texts that no failure may have.
    var secrets: [String] { [password, plain, login.password] }
}

extension SMTPCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { user }
    var debugDescription: String { user }
    /// Empty, so that no dump shows the password.
    var customMirror: Mirror { Mirror(self, children: []) }
}

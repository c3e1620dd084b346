/// Which server messages are given to, and how.
public struct SMTPConfiguration: Sendable {
    /// What an operator may demand of the connection to the server.
    public enum TLS: String, Sendable, Hashable, CaseIterable {
        /// An encrypted connection to a server whose certificate is verified.
        case required
        /// A connection in clear; to a server on this machine only.
        case none
    }

    /// Where the server is.
    public let url: MailURL
    /// How the connection is protected.
    public let security: MailSecurity
    let credentials: SMTPCredentials?
    /// PEM: the authorities whose certificates are trusted; nil trusts those of the operating system.
    public let authorityFile: String?
    /// The certificates themselves, in place of those of the file.
    public var authorities: [UInt8]?
    /// The bounds of the connection.
    public var limits = SMTPLimits()

    /// Checks that the settings fit together. Throws `MailFieldError`, which names the setting.
    ///
    /// - Parameters:
    ///   - url: where the server is.
    ///   - password: of the user of the URL.
    ///   - tls: what is demanded of the connection.
    ///   - authorityFile: PEM: the authorities whose certificates are trusted.
    public init(
        url: MailURL, password: String? = nil, tls: TLS = .required, authorityFile: String? = nil
    ) throws(MailFieldError) {
        if tls == .none {
            if url.isImplicitTLS { throw MailFieldError("mail-tls", "cannot be none for a mail-url with smtps") }
            if url.user != nil { throw MailFieldError("mail-tls", "cannot be none for a mail-url with a user name") }
            if !url.isLoopback {
                throw MailFieldError(
                    "mail-tls", "can only be none for a server on this machine (localhost, 127.0.0.1 or [::1])")
            }
        }
        switch (url.user, password) {
        case (nil, nil): credentials = nil
        case (let user?, let password?): credentials = try SMTPCredentials(user: user, password: password)
        case (_?, nil):
            throw MailFieldError("mail-password-file", "is missing: mail-url has a user name")
        case (nil, _?):
            throw MailFieldError("mail-url", "has no user name for the password of mail-password-file")
        }
        self.url = url
        self.authorityFile = authorityFile
        security = tls == .none ? .none : url.isImplicitTLS ? .implicitTLS : .startTLS
    }
}

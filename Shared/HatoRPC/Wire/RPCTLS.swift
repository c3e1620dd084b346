/// TLS 1.2 or newer on a listener; with `clientAuthorityFile` peers must show a certificate of that authority.
public struct RPCServerTLS: Sendable, Hashable {
    /// PEM: the certificate, then its chain.
    public var certificateFile: String
    /// PEM.
    public var keyFile: String
    /// PEM: the authorities whose certificates clients must show (mutual TLS); nil asks for none.
    public var clientAuthorityFile: String?

    public init(certificateFile: String, keyFile: String, clientAuthorityFile: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.clientAuthorityFile = clientAuthorityFile
    }
}

/// TLS 1.2 or newer on a link to a server.
public struct RPCClientTLS: Sendable, Hashable {
    /// PEM: the authorities to trust; nil trusts those of the operating system.
    public var authorityFile: String?
    /// PEM: what to show when the server asks for a client certificate.
    public var certificateFile: String?
    /// The file of the private key; nil: none is shown.
    public var keyFile: String?
    /// The name the server's certificate must bear; nil is the host that is called.
    public var serverName: String?

    public init(
        authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil, serverName: String? = nil
    ) {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.serverName = serverName
    }
}

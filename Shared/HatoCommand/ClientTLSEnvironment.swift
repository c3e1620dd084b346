import HatoRPC

/// The TLS settings of a command from the environment, where its options give none.
///
/// `HATO_TLS`, `HATO_TLS_CA`, `HATO_TLS_CERTIFICATE`, `HATO_TLS_KEY` and `HATO_TLS_SERVER_NAME`, each also with the
/// service's name (`HATO_AUTH_TLS_CA`), which takes precedence. A `serve` reads `HATO_TLS_CERTIFICATE` and
/// `HATO_TLS_KEY`, too: where both run in one environment, as in a container with its health check, the listener's
/// certificate turns TLS on for the command as well. `HATO_TLS=false` keeps it off, whatever the other variables.
struct ClientTLSEnvironment {
    private let service: String
    private let environment: [String: String]

    /// - Parameter service: its name on the wire, e.g. `messages`.
    init(_ service: String, _ environment: [String: String]) {
        self.service = service
        self.environment = environment
    }

    /// Nil: no TLS. The error for an unusable file names its option or variable, instead of an unreachable server.
    /// Throws `CommandFailure`.
    func tls(_ options: ClientOptions) throws -> RPCClientTLS? {
        let isFlagged =
            options.tls || options.tlsCa != nil || options.tlsCertificate != nil || options.tlsServerName != nil
        let ca = option("--tls-ca", options.tlsCa, "CA")
        // A key from one source does not match a certificate from the other.
        let hasOwnCertificate = options.tlsCertificate != nil
        let certificate = option("--tls-certificate", options.tlsCertificate, "CERTIFICATE")
        let key = option("--tls-key", options.tlsKey, hasOwnCertificate ? nil : "KEY")
        let name = option("--tls-server-name", options.tlsServerName, "SERVER_NAME")
        guard try isFlagged || isOn(else: ca != nil || certificate != nil || name != nil) else { return nil }
        if let certificate, key == nil {
            throw CommandFailure(
                .configuration, "\(certificate.source) needs a key: give --tls-key or \(variable("KEY"))")
        }
        let tls = RPCClientTLS(
            authorityFile: ca?.value, certificateFile: certificate?.value,
            keyFile: certificate == nil ? nil : key?.value, serverName: name?.value)
        do { try tls.check() } catch let error as TLSFileError {
            let source =
                switch error.part {
                case .authority: ca?.source
                case .certificate: certificate?.source
                case .key: key?.source
                }
            throw CommandFailure(.inputOutput, "\(source ?? "TLS"): \(error)")
        }
        return tls
    }

    private struct Option {
        var value: String
        /// The option or variable it comes from.
        var source: String
    }

    private func option(_ flag: String, _ value: String?, _ variableEnd: String?) -> Option? {
        if let value { return Option(value: value, source: flag) }
        guard let variableEnd, let found = found(variableEnd) else { return nil }
        return found
    }

    private func isOn(else isImplied: Bool) throws -> Bool {
        guard let found = found("") else { return isImplied }
        switch found.value {
        case "true": return true
        case "false": return false
        default: throw CommandFailure(.configuration, "\(found.source) is neither true nor false")
        }
    }

    private func found(_ end: String) -> Option? {
        for name in [variable(end, of: service), variable(end)] {
            if let value = environment[name], !value.isEmpty { return Option(value: value, source: name) }
        }
        return nil
    }

    private func variable(_ end: String, of service: String? = nil) -> String {
        (["HATO", service?.uppercased(), "TLS"].compactMap { $0 } + (end.isEmpty ? [] : [end])).joined(separator: "_")
    }
}

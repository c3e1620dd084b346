import Crypto
import HatoModel
import HatoRPC

/// The call in whose course something is written, for the entries of the audit.
struct AuditedCall: Sendable {
    /// The call of the current task; nil for the service's own work.
    @TaskLocal static var current: AuditedCall?

    var method: String
    /// The administrator or the service that called; nil for users.
    var by: String?
    /// The network of the client.
    var address: String?
    /// The network that its customer has: the /48 of an IPv6 address.
    var site: String?

    init(_ method: String, _ origin: CallOrigin) {
        self.method = method
        by = origin.by
        address = origin.address?.network
        site = origin.address?.site
    }

    /// A record with what is known of the call.
    func completed(_ record: AuditRecord) -> AuditRecord {
        var record = record
        record.method = record.method ?? method
        record.by = record.by ?? by
        record.address = record.address ?? address
        return record
    }
}

/// What the audit has of an e-mail address or a username: the same for the same name, and of no use to others.
enum AuditName {
    private static let bytes = 16

    static func text(_ name: String, key: [UInt8]) -> String {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("audit \(name)".utf8), using: SymmetricKey(data: key))
        return Base64.url.encode(Array(code.prefix(bytes)))
    }
}

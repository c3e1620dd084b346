import Crypto

/// What wrong passwords are counted by: an account and a network, or an account and all networks. It says neither: the
/// store keeps it, and names of accounts that do not exist are those of people, too.
struct FailureKey: Sendable, Hashable {
    /// Few enough rows have one that two are never the same.
    static let markBytes = 16

    /// Whether the failures of all networks are counted.
    let isOfAllNetworks: Bool
    /// A code that only this service can compute.
    let mark: [UInt8]

    /// - Parameters:
    ///   - network: Nil for all networks.
    ///   - key: The secret of the service.
    init(_ account: String, network: String?, key: [UInt8]) {
        isOfAllNetworks = network == nil
        // A network contains no line break.
        let text = "failures \(network ?? "")\n\(account)"
        let code = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: key))
        mark = Array(code.prefix(Self.markBytes))
    }

    /// The end of the row's key; nil for other bytes.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.markBytes + 1, let first = bytes.first, first <= 1 else { return nil }
        isOfAllNetworks = first == 1
        mark = Array(bytes.dropFirst())
    }

    var bytes: [UInt8] { [isOfAllNetworks ? 1 : 0] + mark }
}

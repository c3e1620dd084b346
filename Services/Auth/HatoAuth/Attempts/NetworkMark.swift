import Crypto
import HatoIdentity
import HatoModel
import HatoRPC

/// What an account keeps of a network from which it has signed in: a code that only this service can compute, not the
/// address.
struct NetworkMark: Sendable {
    /// An account keeps the last ones.
    private static let countMax = 8
    /// Few enough not to identify an address, many enough that a guesser hits a mark by chance once in 2^48.
    private static let bytes = 6

    /// Nil for a call without a socket, and from loopback.
    let text: String?

    init(_ address: ClientAddress?, key: [UInt8]) {
        text = address.flatMap { address in
            // All clients of a proxy on the same machine.
            if address.isLoopback { return nil }
            let code = HMAC<SHA256>.authenticationCode(
                for: Array("network ".utf8) + Array(address.network.utf8), using: SymmetricKey(data: key))
            return Base64.url.encode(Array(code.prefix(Self.bytes)))
        }
    }

    func isContained(in marks: [String]?) -> Bool { text.map { marks?.contains($0) ?? false } ?? false }

    /// The marks with this one as the newest.
    func added(to marks: [String]?) -> [String]? {
        guard let text else { return marks }
        return Array(([text] + (marks ?? []).filter { $0 != text }).prefix(Self.countMax))
    }
}

import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The signature of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, one for each secret, parted by spaces.
public enum WebhookSignature {
    /// Seconds by which a receiver lets the timestamp be wrong.
    public static let toleranceSeconds: Int64 = 300

    /// The value of `webhook-signature`, over the exact bytes that are sent.
    public static func sign(id: String, timestamp: Int64, body: [UInt8], secrets: [WebhookSecret]) -> String {
        secrets.map { secret in
            let code = HMAC<SHA256>.authenticationCode(
                for: signed(id: id, timestamp: timestamp, body: body), using: SymmetricKey(data: secret.key))
            return "v1," + Data(code).base64EncodedString()
        }
        .joined(separator: " ")
    }

    /// Why a receiver refuses a delivery.
    public enum Refusal: String, Error, Sendable {
        case missingHeaders = "missing_headers"
        case tooOldOrNew = "timestamp_out_of_tolerance"
        case wrongSignature = "wrong_signature"
    }

    /// Checks a delivery as a receiver does; `now` in seconds since 1970. Throws why it is to be refused.
    public static func verify(
        _ headers: WebhookHeaders, body: [UInt8], secrets: [WebhookSecret], now: Int64
    ) throws(Refusal) {
        guard let id = headers.id, let stamp = headers.timestamp.flatMap({ Int64($0) }),
            let signature = headers.signature
        else { throw .missingHeaders }
        guard stamp >= now - toleranceSeconds, stamp <= now + toleranceSeconds else { throw .tooOldOrNew }
        let message = signed(id: id, timestamp: stamp, body: body)
        for candidate in signature.split(separator: " ") where candidate.hasPrefix("v1,") {
            guard let code = Data(base64Encoded: String(candidate.dropFirst(3))) else { continue }
            for secret in secrets
            where HMAC<SHA256>.isValidAuthenticationCode(
                code, authenticating: message, using: SymmetricKey(data: secret.key))
            { return }
        }
        throw .wrongSignature
    }

    private static func signed(id: String, timestamp: Int64, body: [UInt8]) -> [UInt8] {
        Array("\(id).\(timestamp).".utf8) + body
    }
}

/// The three headers of Standard Webhooks as they were received.
public struct WebhookHeaders: Sendable, Hashable {
    /// `webhook-id`: the same for all attempts of a delivery.
    public var id: String?
    /// `webhook-timestamp`: seconds since 1970.
    public var timestamp: String?
    /// `webhook-signature`: versions and signatures, separated by spaces.
    public var signature: String?

    public init(id: String?, timestamp: String?, signature: String?) {
        self.id = id
        self.timestamp = timestamp
        self.signature = signature
    }
}

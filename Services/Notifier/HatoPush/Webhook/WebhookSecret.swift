public import HatoModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A signing secret: `whsec_` and base64 of 24 to 64 bytes (Standard Webhooks).
///
/// Its description hides it; `text` is for the one moment when it is shown, and for the store.
public struct WebhookSecret: Sendable, Hashable {
    let key: [UInt8]

    static let bytesMin = 24
    static let bytesMax = 64
    private static let prefix = "whsec_"

    /// Reads a secret: `whsec_` and base64 of 24 to 64 bytes. Throws `ArgumentError`.
    public init(_ text: String) throws(ArgumentError) {
        guard text.hasPrefix(WebhookSecret.prefix),
            let data = Data(base64Encoded: String(text.dropFirst(WebhookSecret.prefix.count))),
            (WebhookSecret.bytesMin...WebhookSecret.bytesMax).contains(data.count)
        else {
            throw ArgumentError(
                reason: "invalid_secret", "A secret is whsec_ followed by the base64 of 24 to 64 random bytes")
        }
        key = Array(data)
    }

    /// A new secret of 32 random bytes.
    public init(random: @Sendable () -> UInt64) {
        key = (0..<4).flatMap { _ in withUnsafeBytes(of: random()) { Array($0) } }
    }

    /// The secret as people handle it: `whsec_` and base64.
    public var text: String { WebhookSecret.prefix + Data(key).base64EncodedString() }
}

extension WebhookSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "whsec_…" }
    public var debugDescription: String { description }
    /// Empty, so that no dump shows the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

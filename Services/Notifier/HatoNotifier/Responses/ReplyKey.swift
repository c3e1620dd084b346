import Crypto
import HatoModel
import HatoStorage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a push permits: to respond to one notification as one user, from one device, until a time.
struct ReplyCapability: Sendable, Hashable {
    var notification: String
    var uid: String
    var device: String
    /// Milliseconds since 1970.
    var expiresAt: Int64

    /// The unit in which capabilities grow old: one is good for one to two of it after its attempt. All attempts
    /// within one carry the same bytes.
    private static let unit: Int64 = 24 * 3_600_000

    init(notification: String, uid: String, device: String, expiresAt: Int64) {
        self.notification = notification
        self.uid = uid
        self.device = device
        self.expiresAt = expiresAt
    }

    /// Of a push that is attempted at `now`, of a notification that was accepted at `createdAt`.
    init(notification: String, uid: String, device: String, createdAt: Int64, now: Int64) {
        let age = max(0, now - createdAt) / Self.unit
        self.init(
            notification: notification, uid: uid, device: device, expiresAt: createdAt + (age + 2) * Self.unit)
    }

    /// Each text after its length, then the time.
    fileprivate var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for text in [notification, uid, device] {
            let length = UInt16(clamping: text.utf8.count)
            bytes += [UInt8(length >> 8), UInt8(truncatingIfNeeded: length)]
            bytes += Array(text.utf8.prefix(Int(length)))
        }
        withUnsafeBytes(of: UInt64(max(0, expiresAt)).bigEndian) { bytes += Array($0) }
        return bytes
    }

    fileprivate init?(bytes: ArraySlice<UInt8>) {
        var (rest, texts) = (bytes, [String]())
        for _ in 0..<3 {
            guard rest.count >= 2 else { return nil }
            let length = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(2)
            guard rest.count >= length, let text = String(validating: rest.prefix(length), as: UTF8.self) else {
                return nil
            }
            texts.append(text)
            rest = rest.dropFirst(length)
        }
        guard rest.count == 8 else { return nil }
        let time = rest.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.init(notification: texts[0], uid: texts[1], device: texts[2], expiresAt: Int64(clamping: time))
    }
}

/// The key that reply tokens are made and known with, and that makes the keys of pushed replies. It is made once and
/// kept in the store; its descriptions hide it.
struct ReplyKey: Sendable {
    private static let row = RecordKey(.own).with("reply")
    private static let bytesCount = 32
    private let key: SymmetricKey

    /// Throws the errors of the store.
    static func of(_ store: any Store) async throws -> ReplyKey {
        let new = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
        let bytes = try await store.write { transaction in
            if let kept = try transaction.value(row), kept.count == bytesCount { return kept }
            var writes = RecordWrites()
            writes.put(row, bytes: new)
            try writes.apply(to: transaction)
            return new
        }.outcome
        return ReplyKey(bytes)
    }

    init(_ bytes: [UInt8]) { key = SymmetricKey(data: bytes) }

    /// The text of a capability, with its code.
    func token(_ capability: ReplyCapability) -> String {
        let bytes = capability.bytes
        return Base64.url.encode(bytes + code("reply", bytes))
    }

    /// Nil for what is no token of this key.
    func capability(_ token: String) -> ReplyCapability? {
        guard token.utf8.count <= Self.tokenBytesMax, let bytes = Base64.url.decode(token.utf8),
            bytes.count > Self.bytesCount
        else { return nil }
        let message = bytes.dropLast(Self.bytesCount)
        // Compares in constant time.
        let isOurs = HMAC<SHA256>.isValidAuthenticationCode(
            bytes.suffix(Self.bytesCount), authenticating: Self.message("reply", message), using: key)
        return isOurs ? ReplyCapability(bytes: message) : nil
    }

    private static let tokenBytesMax = 8_192

    /// The key under which the effect of an action pushes, the same each time.
    func pushKey(of effect: EffectRecord) -> PushKey {
        let halves = halves("push", of: effect)
        return PushKey(milliseconds: effect.respondedAt, random: (halves.0, halves.1))
    }

    /// The id of the notification that reports an action to the receiver of its effect, the same each time.
    func reportID(of effect: EffectRecord) -> String {
        Outbox.id("ntf_", at: effect.respondedAt, tail: halves("report", of: effect).0)
    }

    /// Made of the notification, user and action.
    private func halves(_ purpose: String, of effect: EffectRecord) -> (UInt64, UInt64) {
        let parts = [effect.notification, effect.uid, effect.action].map { Array($0.utf8) + [0] }
        let code = code(purpose, Array(parts.joined()))
        func half(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return (half(code[0..<8]), half(code[8..<16]))
    }

    private func code(_ purpose: String, _ bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Self.message(purpose, bytes), using: key))
    }

    private static func message(_ purpose: String, _ bytes: some Sequence<UInt8>) -> [UInt8] {
        Array("hato-\(purpose) ".utf8) + bytes
    }
}

extension ReplyKey: CustomStringConvertible, CustomReflectable {
    var description: String { "ReplyKey(…)" }
    /// Empty, so that no dump shows the key.
    var customMirror: Mirror { Mirror(self, children: []) }
}

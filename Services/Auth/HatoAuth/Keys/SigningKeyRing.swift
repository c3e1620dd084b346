import HatoIdentity
import HatoModel

/// The signing keys of the service: one signs, one is published before its use, retired ones are published while their
/// tokens or their session cookies are valid, and revoked ones are not.
///
/// A value; the store keeps its records and the service holds the newest.
struct SigningKeyRing: Sendable {
    enum Problem: Error, CustomStringConvertible {
        case incomplete
        var description: String { "the store holds signing keys, but not exactly one current and one next" }
    }

    private(set) var current: SigningKeyRecord
    private(set) var next: SigningKeyRecord
    private(set) var retired: [SigningKeyRecord]
    private(set) var revoked: [SigningKeyRecord]

    init(current: SigningKeyRecord, next: SigningKeyRecord) {
        self.current = current
        self.next = next
        retired = []
        revoked = []
    }

    /// The keys of a store; nil when it holds none yet.
    init?(_ records: [SigningKeyRecord]) throws {
        if records.isEmpty { return nil }
        let current = records.filter { $0.role == .current }
        let next = records.filter { $0.role == .next }
        guard let only = current.first, let following = next.first, current.count == 1, next.count == 1 else {
            throw Problem.incomplete
        }
        self.current = only
        self.next = following
        retired = records.filter { $0.role == .retired }
        revoked = records.filter { $0.role == .revoked }
    }

    var records: [SigningKeyRecord] { [current, next] + retired + revoked }

    /// Every key that a valid token or session cookie may name at `now`. The `exp` of a retired one is the end of its
    /// ID tokens: a cookie may be valid for longer, which must not give an ID token that long.
    func published(now: Int64, lifetime: Int64) -> [Auth.JWK] {
        let living = retired.filter { !isGone($0, now: now, lifetime: lifetime) }.map { record in
            var jwk = record.publicKey.jwk
            jwk.exp = end(of: record, lifetime: lifetime).map { $0 / 1000 }
            return jwk
        }
        return [current.publicKey.jwk, next.publicKey.jwk] + living
    }

    /// Makes the next key sign from now on and publishes `newcomer` as the one after it. Returns the kids whose rows
    /// may be deleted.
    ///
    /// - Parameter lifetime: the longest of the tokens that the current key has signed.
    mutating func rotate(_ newcomer: SigningKeyRecord, now: Int64, lifetime: Int64) -> [String] {
        var old = current
        old.retire(at: now, until: Self.end(from: now, lifetime: lifetime))
        promote(newcomer, now: now)
        let gone = (retired + revoked).filter { isGone($0, now: now, lifetime: lifetime) }.map(\.kid)
        retired.removeAll { gone.contains($0.kid) }
        revoked.removeAll { gone.contains($0.kid) }
        retired.append(old)
        return gone
    }

    /// Ends a key at once; `newcomer` is published as the next one if the current or the next key ends. False when
    /// there is no such key.
    mutating func revoke(_ kid: String, _ newcomer: SigningKeyRecord, now: Int64) -> Bool {
        if revoked.contains(where: { $0.kid == kid }) { return true }
        guard var ended = records.first(where: { $0.kid == kid }) else { return false }
        if kid == current.kid {
            promote(newcomer, now: now)
        } else if kid == next.kid {
            next = newcomer
        } else {
            retired.removeAll { $0.kid == kid }
        }
        ended.revoke(at: now)
        revoked.append(ended)
        return true
    }

    private mutating func promote(_ newcomer: SigningKeyRecord, now: Int64) {
        current = next
        current.role = .current
        current.usedSince = now
        next = newcomer
    }

    /// Whether the current key has signed for so long that the next one should, which is published long enough.
    ///
    /// - Parameters:
    ///   - now: In milliseconds since 1970.
    ///   - age: In milliseconds.
    func isRotationDue(now: Int64, age: Int64) -> Bool {
        guard now - next.createdAt >= Self.publishedMin || now < next.createdAt else { return false }
        let since = current.usedSince ?? current.createdAt
        // A time in the future is that of a clock that was wrong.
        return now - since >= age || since - now > Self.clockLeeway
    }

    /// The services fetch the keys every ten minutes.
    private static let publishedMin: Int64 = 3_600_000
    private static let clockLeeway: Int64 = 86_400_000

    /// A session cookie that is valid until then is signed with the current key, which stays published for as long.
    mutating func signsCookie(until end: Int64) { current.cookiesUntil = max(current.cookiesUntil ?? 0, end) }

    /// The key that verifies tokens which are valid no longer than ID tokens; nil when there is none, or it has ended.
    func key(_ kid: String, now: Int64, lifetime: Int64) -> VerificationKey? {
        if kid == current.kid { return current.publicKey }
        let record = retired.first { $0.kid == kid }
        return record.flatMap { isOver($0, now: now, lifetime: lifetime) ? nil : $0.publicKey }
    }

    /// The key that verifies session cookies, and when the last of them expires: nil for the current key. Nil when
    /// there is no such key, or it has signed none that is valid still.
    func cookieKey(_ kid: String, now: Int64) -> (key: VerificationKey, endsAt: Int64?)? {
        if kid == current.kid { return (current.publicKey, nil) }
        guard let record = retired.first(where: { $0.kid == kid }), let end = record.cookiesUntil, now <= end else {
            return nil
        }
        return (record.publicKey, end)
    }

    /// Whether no token and no cookie of a retired key is valid any more.
    private func isGone(_ record: SigningKeyRecord, now: Int64, lifetime: Int64) -> Bool {
        guard isOver(record, now: now, lifetime: lifetime) else { return false }
        return record.role == .revoked || (record.cookiesUntil.map { now > $0 } ?? true)
    }

    private func isOver(_ record: SigningKeyRecord, now: Int64, lifetime: Int64) -> Bool {
        end(of: record, lifetime: lifetime).map { now > $0 } ?? false
    }

    private func end(of record: SigningKeyRecord, lifetime: Int64) -> Int64? {
        record.endsAt ?? (record.revokedAt ?? record.retiredAt).map { Self.end(from: $0, lifetime: lifetime) }
    }

    /// A token signed just before its key retired is still valid for a clock that is slightly behind.
    private static func end(from time: Int64, lifetime: Int64) -> Int64 { time + lifetime + 60_000 }
}

import HatoIdentity
import HatoModel

/// The signing keys of the service: one signs, one is published before its use, retired ones are published while their
/// tokens are valid, and revoked ones are not.
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

    /// Every key that a valid token may name at `now`.
    func published(now: Int64, lifetime: Int64) -> [Auth.JWK] {
        let living = retired.filter { !isOver($0, now: now, lifetime: lifetime) }.map { record in
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
        promote(newcomer)
        let gone = (retired + revoked).filter { isOver($0, now: now, lifetime: lifetime) }.map(\.kid)
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
            promote(newcomer)
        } else if kid == next.kid {
            next = newcomer
        } else {
            retired.removeAll { $0.kid == kid }
        }
        ended.revoke(at: now)
        revoked.append(ended)
        return true
    }

    private mutating func promote(_ newcomer: SigningKeyRecord) {
        current = next
        current.role = .current
        next = newcomer
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

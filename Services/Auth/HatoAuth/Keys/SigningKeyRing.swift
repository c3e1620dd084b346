import HatoIdentity
import HatoModel

/// The signing keys of the service: one signs, one is published before its use, retired ones are published while their
/// tokens are valid.
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

    init(current: SigningKeyRecord, next: SigningKeyRecord) {
        self.current = current
        self.next = next
        retired = []
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
    }

    var records: [SigningKeyRecord] { [current, next] + retired }

    /// Every key that a valid token may name at `now`.
    func published(now: Int64, lifetime: Int64) -> [Auth.JWK] {
        let living = retired.filter { !isOver($0, now: now, lifetime: lifetime) }
        return [current.publicKey.jwk, next.publicKey.jwk] + living.map(\.publicKey.jwk)
    }

    /// Makes the next key sign from now on and publishes `newcomer` as the one after it. Returns the kids whose rows
    /// may be deleted.
    mutating func rotate(_ newcomer: SigningKeyRecord, now: Int64, lifetime: Int64) -> [String] {
        var old = current
        old.retire(at: now)
        current = next
        current.role = .current
        next = newcomer
        let gone = retired.filter { isOver($0, now: now, lifetime: lifetime) }.map(\.kid)
        retired.removeAll { gone.contains($0.kid) }
        retired.append(old)
        return gone
    }

    /// A token signed just before its key retired is still valid for a clock that is slightly behind.
    private func isOver(_ record: SigningKeyRecord, now: Int64, lifetime: Int64) -> Bool {
        guard let retiredAt = record.retiredAt else { return false }
        return now - retiredAt > lifetime + 60_000
    }
}

import HatoModel
import HatoStorage

/// What stays of a deleted account until the last of its ID tokens has expired: its uid may be given to another account
/// meanwhile, which must not take them.
struct FormerAccountRecord: Sendable {
    /// Seconds since 1970: later than the time of issue of every ID token of the account.
    var validSince: Int64
    /// Milliseconds since 1970: when the last of its ID tokens has expired.
    var until: Int64

    /// The account is deleted at `now`, in milliseconds. Its own times count, too: the clock may have been set back.
    init(_ account: AccountRecord, now: Int64) {
        // An import brings times of another clock.
        let lastLoginAt = min(account.lastLoginAt ?? 0, now + UserImportPolicy.clockLeewayMilliseconds)
        let last = max(now, lastLoginAt, account.lastRefreshAt ?? 0, account.validSince * 1000)
        validSince = last / 1000 + 1
        until = last + (AuthConfiguration.tokenLifetimeSecondsMax + 60) * 1000
    }
}

extension FormerAccountRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(AccountRecord(uid: "", createdAt: 0), now: 0),
        .seconds("validSince", \.validSince),
        .time("until", \.until))

    /// Throws `RecordError`.
    init(_ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "former account", unknown: .rejected)
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

import HatoFollow
import HatoModel

/// A change of an account, of its sessions or of the signing keys, as the commit that made it records it.
struct AccountEvent: RecordedEvent, Hashable {
    static let method = Auth.Event.method
    static let endMethod = Auth.Cancelled.method

    var type: Auth.EventType
    /// Milliseconds since 1970.
    var time: Int64 = 0
    var uid: String?
    /// Seconds since 1970: ID tokens issued before are refused.
    var since: Int64?
    /// Milliseconds since 1970: when the last ID token that it ends has expired.
    var until: Int64?
    /// The `SessionName`.
    var session: String?
    var kid: String?
    var profile: Auth.PublicProfile?

    static let fields = Fields<Self>(
        blank: Self(.created),
        .required("type", \.type),
        .required("time", \.time),
        .optional("uid", \.uid),
        .optional("since", \.since),
        .optional("until", \.until),
        .optional("session", \.session),
        .optional("kid", \.kid),
        .optional("profile", \.profile))

    init(_ type: Auth.EventType, of uid: String? = nil) {
        self.type = type
        self.uid = uid
    }

    /// Whether ID tokens of an account or a session are not good any more after it.
    var endsTokens: Bool { [.deleted, .disabled, .revoked, .signedOut].contains(type) }
}

extension AccountEvent {
    /// What followers receive of a change of an account.
    ///
    /// - Parameter before: nil for a new account.
    static func events(from before: AccountRecord?, to account: AccountRecord) -> [AccountEvent] {
        guard let before else { return [profileEvent(.created, of: account)] }
        var events: [AccountEvent] = []
        if account.isChangedForOthers(from: before) { events.append(profileEvent(.updated, of: account)) }
        if account.disabled != before.disabled {
            events.append(AccountEvent(account.disabled ? .disabled : .enabled, of: account.uid))
        }
        if account.validSince > before.validSince {
            var event = AccountEvent(.revoked, of: account.uid)
            event.since = account.validSince
            events.append(event)
        }
        return events
    }

    private static func profileEvent(_ type: Auth.EventType, of account: AccountRecord) -> AccountEvent {
        var event = AccountEvent(type, of: account.uid)
        event.profile = account.profile
        return event
    }
}

extension AccountRecord {
    /// What others may read of the account.
    fileprivate var profile: Auth.PublicProfile {
        Auth.PublicProfile(displayName: displayName, username: username, photoUrl: photoUrl)
    }

    /// Whether more than times, networks and the password differ.
    fileprivate func isChangedForOthers(from before: AccountRecord) -> Bool {
        profile != before.profile || email != before.email || emailVerified != before.emailVerified
            || customAttributes != before.customAttributes
    }
}

extension AccountRecord {
    /// The names of the members that say whose account it is and that differ, for the audit.
    func changedMembers(from before: AccountRecord) -> [String] {
        let members: [(String, Bool)] = [
            ("email", email != before.email), ("emailVerified", emailVerified != before.emailVerified),
            ("username", username != before.username), ("displayName", displayName != before.displayName),
            ("photoUrl", photoUrl != before.photoUrl), ("phoneNumber", phoneNumber != before.phoneNumber),
            ("customAttributes", customAttributes != before.customAttributes),
        ]
        return members.filter(\.1).map(\.0)
    }
}

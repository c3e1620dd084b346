// Which requests may be sent again when the outcome of the first one is unknown (protocol §3, `outcome_unknown`). A
// request is idempotent when executing it twice has the same effect as once, apart from the time of the write. A
// request that is only refused the second time (`messages.databases.create`, `auth.signUp`) is not: the caller would
// take the refusal for the outcome.

extension RPCRequest {
    /// True for reads, and for writes that declare it.
    public var isIdempotent: Bool { Self.effect == .read }
}

extension RPCError {
    /// The store failed during the write: it may or may not be applied.
    ///
    /// - Parameter isIdempotent: `RPCRequest.isIdempotent` of the request; only then it may be sent again.
    public static func outcomeUnknown(isIdempotent: Bool) -> RPCError {
        RPCError(
            .unavailable, reason: "outcome_unknown",
            "The store failed while it wrote; whether this request was done is not known", retryable: isIdempotent)
    }
}

extension JSONValue {
    /// Whether it contains an increment (`{".sv": {"increment": n}}`). Every server value except the timestamp counts
    /// as one: no other is known to be repeatable.
    public var holdsIncrement: Bool {
        switch self {
        case .null, .bool, .number, .string: false
        case .array(let elements): elements.contains(where: \.holdsIncrement)
        case .object(let object): object.holdsIncrement
        }
    }
}

extension JSONObject {
    /// Whether it contains an increment.
    public var holdsIncrement: Bool {
        members.contains { member in
            member.name == ".sv" ? member.value != "timestamp" : member.value.holdsIncrement
        }
    }
}

// MARK: messages

extension Messages.Set {
    /// True with an increment when there is a condition: the first execution made it false.
    public var isIdempotent: Bool { ifMatch != nil || ifVersion != nil || !value.holdsIncrement }
}

extension Messages.Update {
    public var isIdempotent: Bool { !values.holdsIncrement }
}

extension Messages.Push {
    /// With a key of the client.
    public var isIdempotent: Bool { key != nil }
}

extension Messages.Remove {
    public var isIdempotent: Bool { true }
}

extension Messages.Import {
    /// Rows hold primitives only.
    public var isIdempotent: Bool { value?.holdsIncrement != true }
}

extension Messages.Rules.Set {
    public var isIdempotent: Bool { true }
}

extension Messages.OnDisconnect.Set {
    public var isIdempotent: Bool { !value.holdsIncrement }
}

extension Messages.OnDisconnect.Update {
    public var isIdempotent: Bool { !values.holdsIncrement }
}

extension Messages.OnDisconnect.Remove {
    public var isIdempotent: Bool { true }
}

extension Messages.OnDisconnect.Cancel {
    public var isIdempotent: Bool { true }
}

// MARK: auth

extension Auth.Refresh {
    /// The same token again brings the same successor (spec auth §9).
    public var isIdempotent: Bool { true }
}

extension Auth.SignOut {
    public var isIdempotent: Bool { true }
}

extension Auth.Sessions.End {
    public var isIdempotent: Bool { true }
}

extension Auth.Settings.Set {
    public var isIdempotent: Bool { true }
}

extension Auth.Providers.Set {
    public var isIdempotent: Bool { true }
}

extension Auth.Keys.Revoke {
    public var isIdempotent: Bool { true }
}

extension Auth.CustomToken.Signers.Set {
    public var isIdempotent: Bool { true }
}

extension Auth.SessionCookie.Create {
    /// Nothing ends with another cookie.
    public var isIdempotent: Bool { true }
}

extension Auth.Account.Update {
    /// A change that ends the sessions of the account is refused the second time: the token of the call has been
    /// revoked.
    public var isIdempotent: Bool {
        email == nil && password == nil && username == nil && (deleteAttributes ?? []).isEmpty
            && (deleteProviders ?? []).isEmpty
    }
}

extension Auth.Users.Update {
    public var isIdempotent: Bool { true }
}

extension Auth.Users.Revoke {
    public var isIdempotent: Bool { true }
}

extension Auth.Users.Import {
    /// Rows that their accounts equal already are not refused.
    public var isIdempotent: Bool { true }
}

// MARK: notifier

extension Notifier.Send {
    /// With an idempotency key; a dry run writes nothing.
    public var isIdempotent: Bool { idempotencyKey != nil || dryRun == true }
}

extension Notifier.Devices.Register {
    /// With a secret of the caller: a generated one is returned only by the call that generated it.
    public var isIdempotent: Bool { secret != nil }
}

extension Notifier.Triggers.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Types.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Preferences.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Badges.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Withdraw {
    /// The thread may have got further notifications since.
    public var isIdempotent: Bool { notification != nil }
}

extension Notifier.Dead.Drop {
    /// With `all` it would also drop later dead deliveries.
    public var isIdempotent: Bool { all != true }
}

extension Notifier.Categories.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Respond {
    /// The same report again gets the same response.
    public var isIdempotent: Bool { true }
}

extension Notifier.QuickReplies.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Topics.Subscribe {
    public var isIdempotent: Bool { true }
}

extension Notifier.Topics.Unsubscribe {
    public var isIdempotent: Bool { true }
}

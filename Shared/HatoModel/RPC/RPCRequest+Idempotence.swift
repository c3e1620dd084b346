// Which requests may be sent again when it is not known whether the first one was done (protocol §3,
// `outcome_unknown`). A request is idempotent when doing it twice leaves what doing it once leaves, apart from the
// time of the write. One that only would be refused the second time (`messages.databases.create`, `auth.signUp`) is
// not: the caller would take the refusal for the outcome.

extension RPCRequest {
    /// Reads are; of the writes those that say so.
    public var isIdempotent: Bool { Self.effect == .read }
}

extension RPCError {
    /// The store failed while the write was on its way: it is there or not.
    ///
    /// - Parameter isIdempotent: of the request (`RPCRequest.isIdempotent`); only then it may be sent again.
    public static func outcomeUnknown(isIdempotent: Bool) -> RPCError {
        RPCError(
            .unavailable, reason: "outcome_unknown",
            "The store failed while it wrote; whether this request was done is not known", retryable: isIdempotent)
    }
}

extension JSONValue {
    /// Whether an increment (`{".sv": {"increment": n}}`) stands anywhere in it. Every server value but the timestamp
    /// counts as one: nothing else is known to be repeatable.
    public var holdsIncrement: Bool {
        switch self {
        case .null, .bool, .number, .string: false
        case .array(let elements): elements.contains(where: \.holdsIncrement)
        case .object(let object): object.holdsIncrement
        }
    }
}

extension JSONObject {
    /// Whether an increment stands anywhere in it.
    public var holdsIncrement: Bool {
        members.contains { member in
            member.name == ".sv" ? member.value != "timestamp" : member.value.holdsIncrement
        }
    }
}

// MARK: messages

extension Messages.Set {
    /// Also with an increment when it has a condition, which the first one made false.
    public var isIdempotent: Bool { ifMatch != nil || ifVersion != nil || !value.holdsIncrement }
}

extension Messages.Update {
    public var isIdempotent: Bool { !values.holdsIncrement }
}

extension Messages.Push {
    /// With a key of the client's.
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

extension Auth.Account.Update {
    /// What ends the sessions of the account is refused the second time: the token that asks for it has ended.
    public var isIdempotent: Bool {
        email == nil && password == nil && username == nil && (deleteAttributes ?? []).isEmpty
    }
}

extension Auth.Users.Update {
    public var isIdempotent: Bool { true }
}

extension Auth.Users.Revoke {
    public var isIdempotent: Bool { true }
}

// MARK: notifier

extension Notifier.Send {
    /// With an idempotency key; a dry run writes nothing.
    public var isIdempotent: Bool { idempotencyKey != nil || dryRun == true }
}

extension Notifier.Devices.Register {
    /// With a secret of the caller's: one that the notifier makes is shown only by the call that made it.
    public var isIdempotent: Bool { secret != nil }
}

extension Notifier.Triggers.Set {
    public var isIdempotent: Bool { true }
}

extension Notifier.Dead.Drop {
    /// With `all` it would drop what died since.
    public var isIdempotent: Bool { all != true }
}

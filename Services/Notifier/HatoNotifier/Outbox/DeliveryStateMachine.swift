import HatoModel

/// Where one delivery stands, and what each event makes of it. Pure: its driver writes the result before
/// acting on it.
///
/// ```
/// pending ──lease──▶ leased ──delivered──▶ delivered
///    ▲                 │ ├──failed──▶ pending (later) or dead
///    └──lease lapsed───┘ └──device gone──▶ dropped
/// pending ──collapsed, expired, device gone, outbox full──▶ dropped     dead ──replay──▶ pending
/// pending, leased ──what a user did: expired, device gone──▶ dead
/// pending ──went with another one of its thread──▶ delivered, dead     pending ──user seen, silent──▶ dropped
/// pending ──held back──▶ pending (later)     pending ──coalesced, not wanted──▶ dropped
/// pending, leased ──what it needs cannot be read──▶ dead     delivered ──others take its place──▶ pending
/// pending ──withdrawn──▶ dropped; a withdrawn one that is leased or dead is never attempted again
/// ```
struct DeliveryStateMachine: FieldObject, Hashable {
    private(set) var state: Notifier.DeliveryState
    /// While pending: when the next attempt is due. While leased: when the lease ends. Else: when it ended.
    private(set) var time: Int64
    /// Attempts that were begun.
    private(set) var attempts: Int
    private(set) var expiresAt: Int64
    /// Why it was dropped or is dead.
    private(set) var reason: String?
    private(set) var lastAttempt: Notifier.AttemptReport?
    /// The attempts before the last one, oldest first; nil without any.
    private(set) var history: [Notifier.AttemptReport]?
    /// Its notification was withdrawn while it was being attempted, or dead.
    private(set) var isWithdrawn = false
    /// Its user was there while it was being attempted as an e-mail.
    private(set) var wasSeen = false
    /// While pending: why it waits though it could be attempted.
    private(set) var hold: Hold?
    /// Whether it says what a user did: what cannot be delivered of it is dead, for an operator, and not dropped.
    private(set) var isKept = false

    /// Attempts that are remembered besides the last one.
    private static let historyMax = 11

    static let fields = Fields<Self>(
        blank: Self(dueAt: 0, expiresAt: 0),
        .required("state", \.state),
        .required("time", \.time),
        .required("attempts", \.attempts),
        .required("expiresAt", \.expiresAt),
        .optional("reason", \.reason),
        .optional("lastAttempt", \.lastAttempt),
        .optional("history", \.history),
        .flag("isWithdrawn", \.isWithdrawn),
        .flag("wasSeen", \.wasSeen),
        .optional("hold", \.hold),
        .flag("isKept", \.isKept))

    init(dueAt: Int64, expiresAt: Int64, isKept: Bool = false) {
        self.isKept = isKept
        state = .pending
        time = dueAt
        attempts = 0
        self.expiresAt = expiresAt
    }

    enum Action: Hashable, Sendable {
        /// The event means nothing in this state: another one came first.
        case ignore
        case send
        case waitUntil(Int64)
        case finish
    }

    enum Reason {
        static let deviceGone = "device_gone"
        static let expired = "expired"
        static let collapsed = "collapsed"
        static let outboxFull = "outbox_full"
        static let unreadable = "unreadable"
        static let rejected = "rejected"
        static let administrator = "administrator"
        static let quiet = "quiet"
        static let coalesced = "coalesced"
        static let withdrawn = "withdrawn"
        static let seen = "seen"
        static let silent = "silent"

        static let all = [
            deviceGone, expired, collapsed, outboxFull, unreadable, rejected, administrator, quiet, coalesced,
            withdrawn, seen, silent,
        ]
    }

    /// What holds a delivery back.
    enum Hold: String, FieldChoice {
        /// Its device or user was sent as much as may be.
        case rate
        /// A quiet window of its user.
        case quiet
    }

    /// Why its user is not notified.
    enum Ending: String, CaseIterable, Sendable {
        case platformOff = "off"
        case muted
        /// The user looks at what it is about.
        case present
    }

    var isFinished: Bool { state != .pending && state != .leased }

    /// The next attempt is to be made. A lease that has lapsed is as good as none: its attempt was lost with
    /// its maker.
    mutating func leaseRequested(at now: Int64, until: Int64) -> Action {
        guard !isFinished, time <= now else { return .ignore }
        guard now < expiresAt else { return expired(at: now) }
        if let reason = endedMeanwhile { return end(.dropped, reason, at: now) }
        state = .leased
        time = until
        attempts += 1
        hold = nil
        return .send
    }

    /// Nothing happens before it expires, or while it is being attempted.
    mutating func timePassed(at now: Int64) -> Action {
        state == .pending && now >= expiresAt ? expired(at: now) : .ignore
    }

    private mutating func expired(at now: Int64) -> Action {
        if attempts == 0, hold == .quiet { return end(.dropped, Reason.quiet, at: now) }
        return end(attempts == 0 && !isKept ? .dropped : .dead, Reason.expired, at: now)
    }

    /// It is due, and is held back until a time, at most until it expires.
    mutating func held(until end: Int64, by hold: Hold) -> Action {
        guard !isFinished else { return .ignore }
        state = .pending
        self.hold = hold
        time = min(end, expiresAt)
        return .waitUntil(time)
    }

    /// It was held back behind others, and is due when it was.
    mutating func waited(because hold: Hold) -> Action {
        guard state == .pending else { return .ignore }
        self.hold = hold
        return .waitUntil(time)
    }

    /// It is no longer held back.
    mutating func turnCame(at now: Int64) -> Action {
        guard state == .pending else { return .ignore }
        time = min(time, now)
        return .waitUntil(time)
    }

    /// It counts another one, which would have expired then.
    mutating func lasts(until end: Int64) {
        if state == .pending { expiresAt = max(expiresAt, end) }
    }

    /// A newer one of its thread counts it.
    mutating func coalesced(at now: Int64) -> Action {
        guard state == .pending else { return .ignore }
        return end(.dropped, Reason.coalesced, at: now)
    }

    /// Its user is not notified.
    mutating func ended(because ending: Ending, at now: Int64) -> Action {
        guard !isFinished else { return .ignore }
        return end(.dropped, ending.rawValue, at: now)
    }

    /// Nothing of it was attempted yet.
    var isUntried: Bool { attempts == 0 && lastAttempt == nil }

    /// The process that held the lease is gone: due at once.
    mutating func leaseReclaimed(at now: Int64) -> Action {
        guard state == .leased else { return .ignore }
        state = .pending
        time = now
        return .waitUntil(now)
    }

    mutating func attemptDelivered(_ report: Notifier.AttemptReport, at now: Int64) -> Action {
        guard state == .leased else { return .ignore }
        remember(report)
        return end(.delivered, nil, at: now)
    }

    /// `delay` in milliseconds, as the back-off decided.
    mutating func attemptFailed(_ report: Notifier.AttemptReport, delay: Int64, at now: Int64) -> Action {
        guard state == .leased else { return .ignore }
        remember(report)
        if let reason = endedMeanwhile { return end(.dropped, reason, at: now) }
        guard now + delay < expiresAt else { return end(.dead, Reason.expired, at: now) }
        state = .pending
        time = now + delay
        return .waitUntil(time)
    }

    /// The provider says that the request is wrong, or that it does not know the token: trying again changes nothing.
    mutating func attemptRejected(_ report: Notifier.AttemptReport, at now: Int64) -> Action {
        guard state == .leased else { return .ignore }
        remember(report)
        if let reason = endedMeanwhile { return end(.dropped, reason, at: now) }
        return end(.dead, Reason.rejected, at: now)
    }

    /// The receiver was not called, or the provider refused all: the attempt does not count. `delay` in milliseconds.
    mutating func attemptPostponed(_ report: Notifier.AttemptReport, delay: Int64, at now: Int64) -> Action {
        guard state == .leased else { return .ignore }
        remember(report)
        attempts = max(0, attempts - 1)
        if let reason = endedMeanwhile { return end(.dropped, reason, at: now) }
        guard now + delay < expiresAt else { return expired(at: now) }
        state = .pending
        time = now + delay
        return .waitUntil(time)
    }

    mutating func deviceWentAway(_ report: Notifier.AttemptReport?, at now: Int64) -> Action {
        guard !isFinished else { return .ignore }
        if let report { remember(report) }
        return end(isKept ? .dead : .dropped, Reason.deviceGone, at: now)
    }

    /// Its notification or its device cannot be read.
    mutating func recordWasUnreadable(at now: Int64) -> Action {
        guard !isFinished else { return .ignore }
        return end(.dead, Reason.unreadable, at: now)
    }

    /// A newer notification with the same collapse key came. One that is being attempted goes on.
    mutating func replaced(at now: Int64) -> Action {
        guard state == .pending else { return .ignore }
        return end(.dropped, Reason.collapsed, at: now)
    }

    /// More deliveries wait than may, and its user has the most. One that is being attempted goes on.
    mutating func outboxWasFull(at now: Int64) -> Action {
        guard state == .pending else { return .ignore }
        return end(.dropped, Reason.outboxFull, at: now)
    }

    /// The user is there: nothing need be sent that waits for an e-mail. One that is being attempted goes on.
    mutating func userWasSeen(at now: Int64) -> Action {
        guard state == .pending else {
            wasSeen = state == .leased
            return .ignore
        }
        return end(.dropped, Reason.seen, at: now)
    }

    /// It shows nothing, and goes where no silent push is taken.
    mutating func wasSilent(at now: Int64) -> Action {
        guard state == .pending else { return .ignore }
        return end(.dropped, Reason.silent, at: now)
    }

    /// It may not be attempted before this time.
    mutating func held(until time: Int64) -> Action {
        guard state == .pending else { return .ignore }
        self.time = time
        return .waitUntil(time)
    }

    /// Whether its attempt says how the others end that went together with it: it was delivered, or refused.
    var hasSettled: Bool { state == .delivered || state == .dead && reason == Reason.rejected }

    /// It went together with another one, which ended like this; nil: it was delivered.
    mutating func wasInMail(_ other: DeliveryStateMachine?, at now: Int64) -> Action {
        guard state == .pending else { return .ignore }
        if let report = other?.lastAttempt { remember(report) }
        return end(other?.state ?? .delivered, other?.reason, at: now)
    }

    mutating func replayed(at now: Int64, expiresAt: Int64) -> Action {
        guard state == .dead else { return .ignore }
        self = DeliveryStateMachine(dueAt: now, expiresAt: expiresAt, isKept: isKept)
        return .waitUntil(now)
    }

    /// Its notification is taken back, or was read elsewhere. One that is being attempted goes on.
    mutating func withdrawn(at now: Int64) -> Action {
        guard state == .pending || state == .dead else {
            isWithdrawn = state == .leased
            return .ignore
        }
        return end(.dropped, Reason.withdrawn, at: now)
    }

    /// It is to go once more: others that it counts take the place of its own words.
    mutating func othersTookPlace(at now: Int64) -> Action {
        guard state == .delivered, now < expiresAt else { return .ignore }
        (state, time) = (.pending, now)
        return .waitUntil(now)
    }

    /// It counts others, and goes for these when its own notification was withdrawn.
    mutating func staysForOthers() { isWithdrawn = false }

    mutating func droppedByAdministrator(at now: Int64) -> Action {
        guard state == .dead else { return .ignore }
        return end(.dropped, Reason.administrator, at: now)
    }

    /// Why it is attempted no more when the attempt that is under way fails; nil: it is.
    private var endedMeanwhile: String? { isWithdrawn ? Reason.withdrawn : wasSeen ? Reason.seen : nil }

    private mutating func remember(_ report: Notifier.AttemptReport) {
        if let lastAttempt { history = Array(((history ?? []) + [lastAttempt]).suffix(Self.historyMax)) }
        lastAttempt = report
    }

    private mutating func end(_ final: Notifier.DeliveryState, _ why: String?, at now: Int64) -> Action {
        state = final
        time = now
        reason = why
        return .finish
    }
}

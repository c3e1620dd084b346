import Metrics

/// The metrics of auth for operators; names are those of Prometheus, each explained in the service's README. Labels
/// have few values and never identify a user.
struct AuthMetrics: Sendable {
    enum Event: Sendable {
        case signedUp
        case signIn(SignInResult)
        case refreshed
        case refreshRepeated
        /// After the grace window.
        case refreshLate
        case refreshRefused
        /// A session ended because a used refresh token was presented again: it may have been stolen.
        case refreshTokenReused
        case issuedToken
        /// The public keys were served.
        case servedKeys
        case keysRotated
        /// No thread was free to hash a password, and the queue was full.
        case passwordQueueFull
        /// The mail server took a mail.
        case mailSent
        /// It refused one for good.
        case mailRefused
        /// A mail is sent again later.
        case mailDelayed
        /// With a provider's ID token.
        case providerSignIn
        case providerSignInRefused
        /// The keys of a provider came, or did not.
        case providerKeysFetched
        case providerKeysMissed
    }

    enum SignInResult: String, Sendable, CaseIterable {
        case ok
        /// A name or a password is wrong, or malformed.
        case wrong
        /// The right password of a disabled account.
        case disabled
        /// Too many attempts from an address or for an account.
        case limited
        /// Too many passwords wait to be hashed.
        case busy
        /// A failure that the caller did not cause.
        case failed

        init(_ error: any Error) {
            switch error as? AuthError {
            case .userDisabled?: self = .disabled
            case .tooManyAttempts?: self = .busy
            case .some: self = .wrong
            case nil: self = .failed
            }
        }
    }

    private let signUps = Counter(label: "hato_auth_sign_ups_total")
    private let signIns = SignInResult.allCases.map {
        Counter(label: "hato_auth_sign_ins_total", dimensions: [("result", $0.rawValue)])
    }
    private let signInTime = Timer(label: "hato_auth_sign_in_seconds")
    private let refreshes = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "ok")])
    private let refreshesRepeated = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "repeated")])
    private let refreshesLate = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "late")])
    private let refreshesRefused = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "refused")])
    private let tokensReused = Counter(label: "hato_auth_refresh_tokens_reused_total")
    private let tokensIssued = Counter(label: "hato_auth_tokens_issued_total")
    private let sessionsExpired = Counter(label: "hato_auth_sessions_expired_total")
    private let keyFetches = Counter(label: "hato_auth_key_fetches_total")
    private let keyRotations = Counter(label: "hato_auth_key_rotations_total")
    private let hashTime = Timer(label: "hato_auth_password_hash_seconds")
    private let hashesRefused = Counter(label: "hato_auth_password_queue_full_total")
    private let mailsSent = Counter(label: "hato_auth_mails_total", dimensions: [("result", "sent")])
    private let mailsRefused = Counter(label: "hato_auth_mails_total", dimensions: [("result", "refused")])
    private let mailsDelayed = Counter(label: "hato_auth_mails_total", dimensions: [("result", "delayed")])
    private let providerSignIns = Counter(label: "hato_auth_provider_sign_ins_total", dimensions: [("result", "ok")])
    private let providerRefusals = Counter(
        label: "hato_auth_provider_sign_ins_total", dimensions: [("result", "refused")])
    private let providerKeys = Counter(label: "hato_auth_provider_key_fetches_total", dimensions: [("result", "ok")])
    private let providerKeyFailures = Counter(
        label: "hato_auth_provider_key_fetches_total", dimensions: [("result", "failed")])
    private let auditsDropped = Counter(label: "hato_auth_audit_dropped_total")
    private let passwordsWaiting = Gauge(label: "hato_auth_passwords_waiting")
    private let passwordsHashing = Gauge(label: "hato_auth_passwords_hashing")

    func count(_ event: Event) { counter(of: event).increment() }

    private func counter(of event: Event) -> Counter {
        switch event {
        case .signedUp: signUps
        case .signIn(let result): signIns[SignInResult.allCases.firstIndex(of: result) ?? 0]
        case .refreshed: refreshes
        case .refreshRepeated: refreshesRepeated
        case .refreshLate: refreshesLate
        case .refreshRefused: refreshesRefused
        case .refreshTokenReused: tokensReused
        case .issuedToken: tokensIssued
        case .servedKeys: keyFetches
        case .keysRotated: keyRotations
        case .passwordQueueFull: hashesRefused
        case .mailSent: mailsSent
        case .mailRefused: mailsRefused
        case .mailDelayed: mailsDelayed
        case .providerSignIn: providerSignIns
        case .providerSignInRefused: providerRefusals
        case .providerKeysFetched: providerKeys
        case .providerKeysMissed: providerKeyFailures
        }
    }

    func signInEnded(_ result: SignInResult, in duration: Duration) {
        count(.signIn(result))
        signInTime.record(duration: duration)
    }

    /// The time for which a password occupied a thread.
    func hashed(in duration: Duration) { hashTime.record(duration: duration) }

    func forgotSessions(_ count: Int) { sessionsExpired.increment(by: count) }

    /// Entries of the audit that were deleted for want of room.
    func droppedAudits(_ count: Int) { auditsDropped.increment(by: count) }

    /// The numbers of passwords that wait for a thread, and that are being hashed.
    func passwords(waiting: Int, hashing: Int) {
        passwordsWaiting.record(waiting)
        passwordsHashing.record(hashing)
    }
}

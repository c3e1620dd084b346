import Metrics

/// What operators watch. Labels never say who.
struct AuthMetrics: Sendable {
    enum Event: Sendable {
        case signedUp
        case signedIn
        case signInRefused
        case refreshed
        case refreshRepeated
        case refreshRefused
        /// A session ended because a used refresh token came again: somebody may have stolen it.
        case refreshTokenReused
        case attemptRefused
        case keysRotated
    }

    private let signUps = Counter(label: "hato_auth_sign_ups_total")
    private let signIns = Counter(label: "hato_auth_sign_ins_total", dimensions: [("result", "ok")])
    private let signInsRefused = Counter(label: "hato_auth_sign_ins_total", dimensions: [("result", "refused")])
    private let refreshes = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "ok")])
    private let refreshesRepeated = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "repeated")])
    private let refreshesRefused = Counter(label: "hato_auth_refreshes_total", dimensions: [("result", "refused")])
    private let tokensReused = Counter(label: "hato_auth_refresh_tokens_reused_total")
    private let attemptsRefused = Counter(label: "hato_auth_attempts_refused_total")
    private let keyRotations = Counter(label: "hato_auth_key_rotations_total")

    func count(_ event: Event) {
        let counter =
            switch event {
            case .signedUp: signUps
            case .signedIn: signIns
            case .signInRefused: signInsRefused
            case .refreshed: refreshes
            case .refreshRepeated: refreshesRepeated
            case .refreshRefused: refreshesRefused
            case .refreshTokenReused: tokensReused
            case .attemptRefused: attemptsRefused
            case .keysRotated: keyRotations
            }
        counter.increment()
    }
}

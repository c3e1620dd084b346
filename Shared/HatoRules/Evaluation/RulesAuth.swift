public import HatoModel

/// The value of `auth` in rules (spec §9.3).
public enum RulesAuth: Sendable {
    /// No user is signed in; every member reads as null.
    case nobody
    /// `uid`, `token` with all claims, and `provider`.
    case user(Caller.User)
    /// Any members, as administrators and tables of cases give them.
    case members(JSONObject)

    /// Maps an administrator to `nobody`: an administrator passes every rule without evaluation. So does a service for
    /// its methods.
    public init(_ caller: Caller) {
        switch caller {
        case .nobody, .administrator, .service: self = .nobody
        case .user(let user): self = .user(user)
        case .variable(let members): self = .members(members)
        }
    }

    var isNobody: Bool { if case .nobody = self { true } else { false } }

    func member(_ name: String) -> RulesValue {
        switch self {
        case .nobody: return .null
        case .members(let members): return RulesValue(members[name])
        case .user(let user):
            switch name {
            case "uid": return .string(user.uid)
            case "token": return .object(.object(user.claims))
            case "provider":
                guard case .object(let firebase)? = user.claims["firebase"] else { return .null }
                return RulesValue(firebase["sign_in_provider"])
            default: return .null
            }
        }
    }
}

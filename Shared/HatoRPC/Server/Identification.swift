import HatoModel

/// Decides which caller a request has (protocol §2): by `auth` and `as` of the call, else the identity of the
/// connection. Pure.
enum Identification {
    case known(Caller)
    case refused(RPCError)
    /// Verifying takes time; `speaksAs` is the `as` of the call.
    case unverified(credential: String, speaksAs: JSONValue?)

    private static let credentialExample = "e.g. \"eyJhbGciOiJFUzI1NiJ9.…\""

    /// - Parameters:
    ///   - auth: the credential of the call.
    ///   - bytesMax: of the credential.
    static func byCredential(_ auth: JSONValue, _ speaksAs: JSONValue?, bytesMax: Int) -> Identification {
        guard let credential = auth.string else {
            return .refused(
                RPCError.invalidParams(
                    "auth",
                    "auth must be a string, an ID token or the administrator key, \(credentialExample)"))
        }
        guard credential.utf8.count <= bytesMax else { return .refused(RPCError.credentialTooLong(bytesMax)) }
        return .unverified(credential: credential, speaksAs: speaksAs)
    }

    /// - Parameter identity: of the connection: the call shows no credential.
    static func byConnection(
        _ identity: Caller, now: @autoclosure () -> Int64, _ method: RPCMethod, _ speaksAs: JSONValue?
    ) -> Identification {
        switch method.start {
        case .authenticate, .forward:
            return .refused(
                RPCError.invalidParams("auth", "\(method.name) needs auth, a credential, \(credentialExample)"))
        case .synchronous, .asynchronous, .endSession: break
        }
        if let end = identity.expiresAt, end <= now() {
            // A user whose token has ended must still be able to get a new one.
            return method.access == .anyone ? .known(.nobody) : .refused(RPCError.tokenExpired)
        }
        return .speaker(for: identity, speaksAs, method)
    }

    /// The caller that an administrator speaks as, or `caller` itself; for a service that may call the method, the
    /// administrator.
    ///
    /// - Parameter speaksAs: `as` of the call.
    static func speaker(for caller: Caller, _ speaksAs: JSONValue?, _ method: RPCMethod) -> Identification {
        // A connection speaks for the holder of the credential: what it may call is decided for each method.
        let seen = method.kind.start == .session ? caller : caller.seen(by: method.name)
        var mayUseAs = seen.isAdministrator
        if case .service(let service) = caller { mayUseAs = mayUseAs && service.mayUseAs }
        guard let speaksAs else { return .known(seen) }
        guard mayUseAs else { return .refused(RPCError.onlyAdministratorsMayUseAs) }
        switch speaksAs {
        case .null: return .known(.nobody)
        case .object(let object) where object["variable"] != nil: return variable(object)
        case .object(let object):
            let unknown = object.members.first { $0.name != "uid" && $0.name != "token" }
            guard let uid = object["uid"]?.string, unknown == nil else { break }
            switch object["token"] {
            case nil: return .known(.user(Caller.User(uid: uid)))
            case .object(let claims)?:
                guard isShort(claims) else { return .refused(.tokenTooLong(asBytesMax)) }
                return .known(.user(Caller.User(uid: uid, claims: claims)))
            default: break
            }
        default: break
        }
        return .refused(.invalidAs)
    }

    /// Of JSON, as much as an ID token: what listeners and onDisconnect keep of it is bounded.
    private static let asBytesMax = 16 << 10

    private static func isShort(_ members: JSONObject) -> Bool { EncodedJSON(.object(members)).count <= asBytesMax }

    /// `as: {"variable": …}`.
    private static func variable(_ object: JSONObject) -> Identification {
        guard object.count == 1, case .object(let members)? = object["variable"] else { return .refused(.invalidAs) }
        guard isShort(members) else { return .refused(.variableTooLong(asBytesMax)) }
        return .known(.variable(members))
    }
}

import HatoModel
import Logging
import NIOCore

// Who asks (protocol §2): `auth` and `as` of a call, else the identity of the connection.

enum Identification {
    case known(Caller)
    case refused(RPCError)
    /// Verifying takes time; `speaksAs` is the `as` of the call.
    case unverified(credential: String, speaksAs: JSONValue?)
}

extension ConnectionHandler {
    /// Takes `auth` and `as` out of the params, unless the method has parameters of these names itself.
    func identify(_ request: inout CurrentRequest) -> Identification {
        let auth = take("auth", from: &request)
        let speaksAs = take("as", from: &request)
        request.isByAdministrator = speaksAs != nil
        guard let auth else {
            if case .authenticate = request.method.start {
                return .refused(RPCError.invalidParams("auth", "session.authenticate needs auth, a credential"))
            }
            return identifyByConnection(request, speaksAs)
        }
        guard let credential = auth.string else {
            return .refused(
                RPCError.invalidParams(
                    "auth",
                    "auth must be a string, an ID token or the administrator key, e.g. \"eyJhbGciOiJFUzI1NiJ9.…\""))
        }
        guard credential.utf8.count <= server.limits.credentialBytesMax else {
            return .refused(RPCError.credentialTooLong(server.limits.credentialBytesMax))
        }
        request.isCallCredential = true
        guard let caller = server.authenticator.remembered(credential) else {
            return .unverified(credential: credential, speaksAs: speaksAs)
        }
        showed(caller)
        return speaker(for: caller, speaksAs)
    }

    private func take(_ name: String, from request: inout CurrentRequest) -> JSONValue? {
        guard !request.method.ownParameters.contains(name), let value = request.params[name] else { return nil }
        request.params[name] = nil
        return value
    }

    private func identifyByConnection(_ request: CurrentRequest, _ speaksAs: JSONValue?) -> Identification {
        if let end = identity.expiresAt, end <= server.now() {
            // Somebody whose token has ended must still be able to get a new one.
            return request.method.access == .anyone ? .known(.nobody) : .refused(RPCError.tokenExpired)
        }
        return speaker(for: identity, speaksAs)
    }

    private func speaker(for caller: Caller, _ speaksAs: JSONValue?) -> Identification {
        guard let speaksAs else { return .known(caller) }
        guard caller.isAdministrator else { return .refused(RPCError.onlyAdministratorsMayUseAs) }
        switch speaksAs {
        case .null: return .known(.nobody)
        case .object(let object):
            let unknown = object.members.first { $0.name != "uid" && $0.name != "token" }
            guard let uid = object["uid"]?.string, unknown == nil else { break }
            switch object["token"] {
            case nil: return .known(.user(Caller.User(uid: uid)))
            case .object(let claims)?: return .known(.user(Caller.User(uid: uid, claims: claims)))
            default: break
            }
        default: break
        }
        return .refused(
            RPCError.invalidParams(
                "as", "as must be null or a user, e.g. {\"uid\": \"alice\", \"token\": {\"email\": \"…\"}}"))
    }

    /// Verifies the credential of the request that waits; what is behind it waits too.
    func verify(_ credential: String, _ speaksAs: JSONValue?) {
        machine.verificationBegan()
        let connection = connection
        let authenticator = server.authenticator
        let notices = server.notices
        Task {
            let outcome: Result<Caller, RPCError>
            do {
                outcome = .success(try await authenticator.authenticate(credential))
            } catch {
                if !(error is any RPCErrorConvertible) {
                    notices.notice(
                        .failedVerification, "verifying a credential failed", ["error": "\(String(reflecting: error))"],
                        level: .error)
                }
                outcome = .failure(RPCError(error))
            }
            connection.hub.post(.run(connection) { $0.verified(outcome, speaksAs) })
        }
    }

    private func verified(_ outcome: Result<Caller, RPCError>, _ speaksAs: JSONValue?) {
        machine.verificationEnded()
        guard let request = waiting?.current else { return }
        let identification: Identification
        switch outcome {
        case .success(let caller):
            showed(caller)
            identification = speaker(for: caller, speaksAs)
        case .failure(let error): identification = .refused(error)
        }
        switch identification {
        case .known(let caller): waiting?.current?.caller = caller
        case .refused(let error):
            waiting?.current = nil
            fail(request, error)
        case .unverified: break
        }
    }

    // MARK: session.authenticate, session.end

    func authenticate(_ request: CurrentRequest, _ caller: Caller) {
        if let unknown = request.params.members.first {
            return fail(
                request, RPCError.invalidParams(unknown.name, "session.authenticate has no parameter of this name"))
        }
        become(caller, isEnd: false)
        succeed(
            request,
            [
                "uid": caller.uid.map { .string($0) } ?? .null, "admin": .bool(caller.isAdministrator),
                "expiresAt": caller.expiresAt.map { .number(Double($0)) } ?? .null,
            ])
    }

    func endSession(_ request: CurrentRequest) {
        if let unknown = request.params.members.first {
            return fail(request, RPCError.invalidParams(unknown.name, "session.end has no parameters"))
        }
        become(.nobody, isEnd: true)
        succeed(request, [:])
    }

    private func become(_ caller: Caller, isEnd: Bool) {
        identity = caller
        chargeToCaller()
        machine.identityChanged(isTakenOver: !connection.setCaller(caller, isEnd: isEnd))
        scheduleExpiry()
    }

    /// What watched the identity has taken over the new one.
    func identityWorkIsDone() { machine.identityChanged(isTakenOver: true) }

    /// Ends the listeners whose token has ended, and comes back when the next one does.
    func scheduleExpiry() {
        expiry?.cancel()
        expiry = nil
        let now = server.now()
        guard machine.phase != .closed, let next = connection.expireIdentities(now: now) else { return }
        // A clock that is set forward is noticed within a minute.
        let delay = min(max(next - now, 1), 60_000)
        expiry = hub.loop.assumeIsolated().scheduleTask(in: .milliseconds(delay)) { [weak self] in
            self?.scheduleExpiry()
        }
    }
}

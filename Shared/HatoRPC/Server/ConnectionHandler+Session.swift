import HatoModel
import Logging
import NIOCore

// Who asks (`Identification`), and changes of the identity of the connection.

extension ConnectionHandler {
    /// Takes `auth` and `as` out of the params, unless the method has parameters of these names itself.
    func identify(_ request: inout CurrentRequest) -> Identification {
        let auth = request.take("auth")
        let speaksAs = request.take("as")
        request.isByAdministrator = speaksAs != nil
        guard let auth else { return .byConnection(identity, now: server.now(), request.method, speaksAs) }
        let identification = Identification.byCredential(auth, speaksAs, bytesMax: server.limits.credentialBytesMax)
        guard case .unverified(let credential, _) = identification else { return identification }
        request.isCallCredential = true
        guard let caller = server.authenticator.remembered(credential) else { return identification }
        showed(caller)
        return .speaker(for: caller, speaksAs)
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
            identification = .speaker(for: caller, speaksAs)
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
        succeed(request, caller.authenticated)
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

import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// `auth.keys`, `auth.keys.rotate` and `auth.keys.revoke`.
struct KeyMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Keys.self, in: &router) { methods, _, _ in
            methods.service.metrics.count(.servedKeys)
            return Auth.Keys.Result(keys: methods.service.publishedKeys)
        }
        handle(Auth.Keys.Rotate.self, in: &router) { methods, _, _ in try await methods.rotateKeys() }
        handle(Auth.Keys.Revoke.self, in: &router) { methods, request, _ in
            try await methods.revokeKey(request.kid)
        }
    }

    func rotateKeys() async throws -> Auth.Keys.Rotate.Result { try await rotate { _ in true } ?? result(service.ring) }

    /// Rotates the keys if the current one has signed for so many days. Whether it is due is decided in the
    /// transaction: another rotation may have been first.
    func rotateKeysIfDue() async throws {
        let age = configuration.keyRotationDays * 86_400_000
        guard age > 0, service.ring.isRotationDue(now: environment.now(), age: age) else { return }
        let now = environment.now()
        _ = try await rotate { $0.isRotationDue(now: now, age: age) }
    }

    /// Nil when it is not due.
    private func rotate(
        if isDue: @escaping @Sendable (SigningKeyRing) -> Bool
    ) async throws -> Auth.Keys.Rotate.Result? {
        let newcomer = ServiceSecrets.newKey(.next, environment)
        let now = environment.now()
        let lifetime = configuration.tokenLifetimeSeconds * 1000
        let ring = try await change { ring, rows in
            guard isDue(ring) else { return [] }
            let longest = max(lifetime, try LongestLifetime.find(in: rows))
            LongestLifetime.put(lifetime, in: rows)
            rows.audit(.keysRotated, reason: ring.next.kid)
            return ring.rotate(newcomer, now: now, lifetime: longest)
        }
        guard ring.next.kid == newcomer.kid else { return nil }
        metrics.count(.keysRotated)
        environment.logger.notice("rotated the signing keys", metadata: ["kid": "\(ring.current.kid)"])
        return result(ring)
    }

    func revokeKey(_ kid: String) async throws -> Auth.Keys.Rotate.Result {
        let newcomer = ServiceSecrets.newKey(.next, environment)
        let now = environment.now()
        var event = AccountEvent(.keyRevoked)
        event.kid = kid
        let ring = try await change(recording: event) { ring, _ in
            guard ring.revoke(kid, newcomer, now: now) else { throw AuthError.keyNotFound }
            return []
        }
        environment.logger.notice(
            "revoked a signing key", metadata: ["kid": "\(kid)", "current": "\(ring.current.kid)"])
        return result(ring)
    }

    /// Durable before a new key signs anything: after a restart the service must be able to verify every issued token,
    /// and no token of a revoked key.
    ///
    /// - Parameters:
    ///   - event: What followers learn of it.
    ///   - body: Returns the kids whose rows are deleted.
    func change(
        recording event: AccountEvent? = nil,
        _ body: @escaping @Sendable (inout SigningKeyRing, AuthTransaction) throws -> [String]
    ) async throws -> SigningKeyRing {
        let committed = try await service.write { [secretRows = service.secretRows] rows in
            guard var ring = try secretRows.ring(in: rows) else {
                throw SigningKeyRing.Problem.incomplete
            }
            let gone = try body(&ring, rows)
            for record in ring.records { try secretRows.put(record, in: rows) }
            for kid in gone { rows.deleteRow(AuthKey.signingKey(kid)) }
            if let event { rows.record(event) }
            return ring
        }
        service.take(committed.outcome, version: committed.version)
        return committed.outcome
    }

    private func result(_ ring: SigningKeyRing) -> Auth.Keys.Rotate.Result {
        let lifetime = configuration.tokenLifetimeSeconds * 1000
        return Auth.Keys.Rotate.Result(
            kid: ring.current.kid, keys: ring.published(now: environment.now(), lifetime: lifetime))
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// `auth.keys` and `auth.keys.rotate`.
struct KeyMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Keys.self, in: &router) { methods, _, _ in
            methods.service.metrics.count(.servedKeys)
            return Auth.Keys.Result(keys: methods.service.publishedKeys)
        }
        handle(Auth.Keys.Rotate.self, in: &router) { methods, _, _ in try await methods.rotateKeys() }
    }

    /// Durable before the new key signs anything: after a restart the service must be able to verify every issued
    /// token.
    func rotateKeys() async throws -> Auth.Keys.Rotate.Result {
        let newcomer = ServiceSecrets.newKey(.next, environment)
        let now = environment.now()
        let lifetime = configuration.tokenLifetimeSeconds * 1000
        let committed = try await service.write { rows in
            guard var ring = try SigningKeyRing(SigningKeyRecord.all(in: rows)) else {
                throw SigningKeyRing.Problem.incomplete
            }
            let gone = ring.rotate(newcomer, now: now, lifetime: lifetime)
            for record in ring.records { rows.putRow(AuthKey.signingKey(record.kid), record.bytes) }
            for kid in gone { rows.deleteRow(AuthKey.signingKey(kid)) }
            return ring
        }
        service.take(committed.outcome, version: committed.version)
        metrics.count(.keysRotated)
        let kid = committed.outcome.current.kid
        environment.logger.notice("rotated the signing keys", metadata: ["kid": "\(kid)"])
        return Auth.Keys.Rotate.Result(kid: kid, keys: committed.outcome.published(now: now, lifetime: lifetime))
    }
}

import Crypto
import Foundation
import HatoModel
import HatoRPC
import Logging

/// A stand-in for auth that signs ID tokens of any lifetime; auth signs none for less than a minute.
final class TokenIssuer: Sendable {
    /// Takes any credential.
    private struct AnyAuthenticator: Authenticator {
        func remembered(_ credential: String) -> Caller? { .administrator }
        func authenticate(_ credential: String) async throws -> Caller { .administrator }
    }

    private static let kid = "key-1"

    let address: String
    private let key = P256.Signing.PrivateKey()
    private let server: RPCServer

    init() async throws {
        let point = Array(key.publicKey.rawRepresentation)
        let published = Auth.JWK(
            kid: Self.kid, x: Base64.url.encode(point[..<32]), y: Base64.url.encode(point[32...]))
        var router = RPCRouter()
        router.handle(Auth.Keys.self) { _, _ in Auth.Keys.Result(keys: [published]) }
        var configuration = RPCServerConfiguration(service: "auth", version: "1")
        configuration.port = 0
        configuration.methods = [Auth.Keys.self]
        server = RPCServer(
            configuration, router: router, authenticator: AnyAuthenticator(), logger: Logger(label: "issuer"))
        let address = try await server.start()
        self.address = "\(address.host):\(address.port)"
    }

    /// A token of a user, and its end in seconds since 1970.
    ///
    /// - Parameter seconds: for which it is valid, or a second less.
    func token(of uid: String, seconds: Int) throws -> (text: String, end: Double) {
        let header: JSONValue = ["alg": "ES256", "kid": .string(Self.kid), "typ": "JWT"]
        let now = Date.now.timeIntervalSince1970.rounded(.down)
        let end = now + Double(seconds)
        let claims: JSONValue = [
            "iss": "https://securetoken.google.com/hato", "aud": "hato", "sub": .string(uid), "iat": .number(now),
            "exp": .number(end), "firebase": ["sign_in_provider": "anonymous"],
        ]
        let input = "\(Base64.url.encode(header.encoded)).\(Base64.url.encode(claims.encoded))"
        let signature = try key.signature(for: Array(input.utf8)).rawRepresentation
        return ("\(input).\(Base64.url.encode(signature))", end)
    }

    func stop() async { await server.shutdown(grace: .seconds(1)) }
}

import CryptoExtras
import Foundation
import HatoIdentity
import HatoModel
import HatoRPC

@testable import HatoAuth

/// A service account: its key, and the custom tokens that it signs.
struct ServiceAccount {
    static let email = "backend@chat.iam.gserviceaccount.com"

    private static let made = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }
    private static let madeOther = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }

    let key: _RSA.Signing.PrivateKey

    /// The same key in every test: making one takes a second.
    init() throws { key = try Self.made.get() }

    private init(_ key: _RSA.Signing.PrivateKey) { self.key = key }

    /// With another key.
    static func other() throws -> ServiceAccount { ServiceAccount(try madeOther.get()) }

    var publicKey: String { key.publicKey.pemRepresentation }

    /// The claims as Firebase's libraries make them.
    static func claims(_ uid: String, at now: Int64, _ claims: JSONObject? = nil) -> JSONObject {
        var all: JSONObject = [
            "iss": .string(email), "sub": .string(email), "aud": .string(CustomTokenVerifier.audience),
            "uid": .string(uid), "iat": .number(Double(now / 1000)), "exp": .number(Double(now / 1000 + 3600)),
        ]
        all["claims"] = claims.map { .object($0) }
        return all
    }

    func sign(_ claims: JSONObject, header: JSONObject = ["alg": "RS256", "typ": "JWT", "kid": "any"]) throws -> String
    {
        let input = Self.input(header, claims)
        let signature = try key.signature(for: Data(input.utf8), padding: .insecurePKCS1v1_5)
        return "\(input).\(Base64.url.encode(Array(signature.rawRepresentation)))"
    }

    static func input(_ header: JSONObject, _ claims: JSONObject) -> String {
        [header, claims].map { Base64.url.encode(JSONValue.object($0).encoded) }.joined(separator: ".")
    }
}

extension AuthService {
    var customTokens: CustomTokenMethods { CustomTokenMethods(service: self) }
    var cookies: SessionCookieMethods { SessionCookieMethods(service: self) }
}

extension AuthBench {
    func customToken(_ uid: String = "masuo-1", _ claims: JSONObject? = nil) throws -> String {
        try service.customTokens.makeToken(Auth.CustomToken.Create(uid: uid, claims: claims)).token
    }

    func signIn(customToken token: String, from address: String? = nil) async throws -> Auth.Session {
        try await service.customTokens.signIn(
            Auth.SignInWithCustomToken(token: token), CallOrigin(address: address.map { ClientAddress($0) }))
    }

    func register(_ account: ServiceAccount) async throws {
        _ = try await service.customTokens.setSigner(
            Auth.CustomToken.Signers.Set(email: ServiceAccount.email, publicKey: account.publicKey))
    }

    func cookie(_ session: Auth.Session, _ seconds: Int? = nil) async throws -> String {
        try await service.cookies.makeCookie(
            Auth.SessionCookie.Create(idToken: session.idToken, validForSeconds: seconds)
        ).sessionCookie
    }

    func claims(ofCookie cookie: String, checkRevoked: Bool? = nil) async throws -> JSONObject {
        try await service.cookies.claims(
            Auth.SessionCookie.Verify(sessionCookie: cookie, checkRevoked: checkRevoked))
    }
}

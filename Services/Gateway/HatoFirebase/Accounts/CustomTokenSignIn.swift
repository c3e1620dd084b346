import HatoModel

/// `signInWithCustomToken` in emulator mode: a token without signature, or JSON alone, is made anew by the service, and
/// so is one whose signer the service does not know (spec auth §8).
struct CustomTokenSignIn: AccountWork, SecretHolder {
    /// The audience of custom tokens.
    static let audience =
        "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"

    /// What a token says.
    private struct Draft: Sendable, Hashable {
        var uid: String
        var claims: JSONObject?
    }

    private enum Stage: Sendable, Hashable {
        case making(Draft)
        case signingIn(String)
    }

    private var stage: Stage

    /// Throws `AuthFault` for what is neither a JWT nor JSON of one.
    init(_ token: String) throws(AuthFault) {
        if token.hasPrefix("{") {
            guard case .object(let payload)? = try? JSONParser.parse(token) else {
                throw AuthFault("INVALID_CUSTOM_TOKEN", "The token is neither strict JSON nor a JWT.")
            }
            stage = .making(try Self.draft(payload))
            return
        }
        guard let parsed = CompactToken(token) else {
            throw AuthFault("INVALID_CUSTOM_TOKEN", "Invalid assertion format")
        }
        stage = parsed.signature.isEmpty ? .making(try Self.draft(of: parsed)) : .signingIn(token)
    }

    var description: String { "CustomTokenSignIn" }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(call) }

    private var call: NativeCall {
        switch stage {
        case .making(let draft):
            NativeCall(Auth.CustomToken.Create(uid: draft.uid, claims: draft.claims), .gateway)
        case .signingIn(let token): NativeCall(Auth.SignInWithCustomToken(token: token))
        }
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        switch stage {
        case .making:
            stage = .signingIn(try result.result(of: Auth.CustomToken.Create.self).token)
            return .call(call)
        case .signingIn:
            return .respond(SessionWire(try result.result(of: Auth.SignInWithCustomToken.self)).customToken)
        }
    }

    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        guard case .signingIn(let token) = stage, let parsed = CompactToken(token), !Self.isOfService(parsed),
            ["INVALID_CUSTOM_TOKEN", "CREDENTIAL_MISMATCH"].contains(error.reason)
        else { return nil }
        stage = .making(try Self.draft(of: parsed))
        return .call(call)
    }

    /// A token that the service has made: making it again would not help.
    private static func isOfService(_ token: CompactToken) -> Bool { token.header["alg"]?.string == "ES256" }

    private static func draft(of token: CompactToken) throws(AuthFault) -> Draft {
        guard token.claims["aud"]?.string == audience else {
            throw AuthFault("INVALID_CUSTOM_TOKEN", "The audience (aud) is not that of custom tokens.")
        }
        return try draft(token.claims)
    }

    private static func draft(_ payload: JSONObject) throws(AuthFault) -> Draft {
        let uid = [payload["uid"], payload["user_id"]].lazy.compactMap(primitiveText).first
        guard let uid, !uid.isEmpty else { throw AuthFault("MISSING_IDENTIFIER") }
        var draft = Draft(uid: uid)
        switch payload["claims"] {
        case nil, .null?: break
        case .object(let claims)?:
            try AccountText.check(claims: claims)
            draft.claims = claims
        default: throw AuthFault("INVALID_CLAIMS")
        }
        return draft
    }

    private static func primitiveText(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text)?: text
        case .number?: value?.integer.map { String($0) }
        case .bool(let flag)?: String(flag)
        default: nil
        }
    }
}

import HatoModel

/// The `d` of a response to `auth` (spec realtime-database §8.4).
enum AuthResponse {
    /// - Parameter result: that of `session.authenticate`.
    static func data(_ credential: SessionCredential, _ result: Session.Authenticate.Result) -> JSONValue {
        var data: JSONObject = ["auth": identity(credential, result)]
        if let expiresAt = result.expiresAt { data.append("expires", .number(Double(expiresAt / 1_000))) }
        return .object(data)
    }

    /// Null for an administrator, also one that speaks for others.
    private static func identity(_ credential: SessionCredential, _ result: Session.Authenticate.Result) -> JSONValue {
        guard !result.admin, credential.override == .none, let claims = claims(of: credential.text),
            let uid = result.uid ?? claims["user_id"]?.string ?? claims["sub"]?.string
        else { return .null }
        let provider = claims["firebase"]?["sign_in_provider"]?.string ?? "custom"
        return ["uid": .string(uid), "provider": .string(provider), "token": .object(claims)]
    }

    /// The claims of a token that was accepted.
    private static func claims(of token: String) -> JSONObject? {
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Base64.url.decode(parts[1]), let json = try? JSONParser.parse(bytes),
            case .object(let claims) = json
        else { return nil }
        return claims
    }
}

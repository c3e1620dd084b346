import HatoModel

/// Sessions in Firebase's words (spec auth §3): the user, and the tokens.
struct SessionWire: Sendable, SecretHolder {
    let session: Auth.Session
    /// The claims of the session's ID token, which the service has just signed.
    let claims: JSONObject

    init(_ session: Auth.Session) {
        self.session = session
        claims = CompactToken(session.idToken)?.claims ?? [:]
    }

    var description: String { "SessionWire" }

    var email: String? { claims["email"]?.string }
    var displayName: String? { claims["name"]?.string }

    /// The members of the tokens. `expiresIn` is a text.
    static func tokens(_ idToken: String, _ refreshToken: String, _ expiresIn: Int) -> [JSONObject.Member] {
        [
            .init("idToken", .string(idToken)), .init("refreshToken", .string(refreshToken)),
            .init("expiresIn", .string(String(expiresIn))),
        ]
    }

    /// A response with tokens behind `members`.
    func response(_ members: KeyValuePairs<String, JSONValue?>) -> AccountResponse {
        let tokens = Self.tokens(session.idToken, session.refreshToken, session.expiresIn)
        return AccountResponse(JSONObject(uniqueMembers: JSONObject(present: members).members + tokens))
    }

    var signUp: AccountResponse {
        response([
            "kind": "identitytoolkit#SignupNewUserResponse", "localId": .string(session.uid), "email": .text(email),
            "displayName": .text(displayName),
        ])
    }

    var signIn: AccountResponse {
        response([
            "kind": "identitytoolkit#VerifyPasswordResponse", "localId": .string(session.uid), "email": .text(email),
            "displayName": .string(displayName ?? ""), "registered": true,
        ])
    }

    var customToken: AccountResponse {
        response(["kind": "identitytoolkit#VerifyCustomTokenResponse", "isNewUser": .bool(session.isNewUser)])
    }

    var emailLink: AccountResponse {
        response([
            "kind": "identitytoolkit#EmailLinkSigninResponse", "email": .text(email), "localId": .string(session.uid),
            "isNewUser": .bool(session.isNewUser),
        ])
    }
}

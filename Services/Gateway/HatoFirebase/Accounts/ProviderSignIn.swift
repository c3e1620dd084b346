import HatoModel

/// `signInWithIdp` with a provider's ID token (spec auth §3); pop-ups, redirects and access tokens are not there.
struct ProviderSignIn: AccountWork, SecretHolder {
    private let provider: String
    /// The provider's ID token.
    private let idToken: String
    private var request: Auth.SignInWithProvider
    /// Whether some refusals come as a 200 with `errorMessage`, beside the credential.
    private let returnsCredential: Bool
    private let identity: NativeCall.Identity

    /// Throws `AuthFault`, in the order of Firebase's checks.
    init(_ wire: AccountWire, _ body: AccountBody) throws(AuthFault) {
        for name in ["pendingIdToken", "pendingToken"] where try body.filled(name) != nil { throw .unimplemented(name) }
        let parameters = try Self.parameters(body)
        guard let provider = parameters["providerId"]?.lowercased(), !provider.isEmpty else {
            throw AuthFault("INVALID_CREDENTIAL_OR_PROVIDER_ID", "The providerId is missing.")
        }
        guard let idToken = parameters["id_token"], !idToken.isEmpty else {
            if parameters["SAMLResponse"] != nil { throw .unimplemented("SAML sign-in") }
            if parameters["access_token"] != nil { throw .unimplemented("sign-in with an access token") }
            if parameters["code"] != nil { throw .unimplemented("sign-in with an authorisation code") }
            throw .unimplemented("pop-up and redirect sign-in")
        }
        guard idToken.utf8.count <= wire.context.limits.tokenBytesMax else {
            throw AuthFault("INVALID_IDP_RESPONSE", "The provider's ID token is too long.")
        }
        self.provider = provider
        self.idToken = idToken
        identity = wire.caller.shown
        returnsCredential = try body.flag("returnIdpCredential") ?? false
        request = Auth.SignInWithProvider(provider: provider, idToken: idToken)
        request.nonce = parameters["nonce"].flatMap { $0.isEmpty ? Optional.none : $0 }
        request.displayName = parameters["user"].flatMap(Self.name)
        if let own = try body.filled("idToken") {
            try wire.check(own)
            request.link = own
            request.linkOnly = true
        }
    }

    /// Those of the URI's query, of the body's form, and of the URI's fragment: later ones replace earlier ones.
    private static func parameters(_ body: AccountBody) throws(AuthFault) -> AccountParameters {
        guard let uri = try body.filled("requestUri") else { throw AuthFault("MISSING_REQUEST_URI") }
        guard AccountText.isAbsoluteURI(uri) else { throw AuthFault("INVALID_REQUEST_URI") }
        let parts = uri.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let query = parts[0].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).dropFirst().first
        let others = [try body.text("postBody") ?? "", parts.count > 1 ? String(parts[1]) : ""]
        return AccountParameters(query.map(String.init) ?? "").overridden(by: others.map { AccountParameters($0) })
    }

    /// Apple gives the name to the app alone, once, as JSON.
    private static func name(_ text: String) -> String? {
        guard let names = (try? JSONParser.parse(text))?["name"] else { return nil }
        let parts = [names["firstName"]?.string, names["lastName"]?.string].compactMap { $0 }.filter { !$0.isEmpty }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    var description: String { "ProviderSignIn" }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(NativeCall(request, identity)) }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        let session = try result.result(of: Auth.SignInWithProvider.self).session
        let own = SessionWire(session)
        var members = credential
        members["localId"] = .string(session.uid)
        if let email = own.email, credential["email"] == .string(email) {
            members["emailVerified"] = own.claims["email_verified"]
        }
        members["isNewUser"] = .bool(session.isNewUser)
        for member in SessionWire.tokens(session.idToken, session.refreshToken, session.expiresIn) {
            members[member.name] = member.value
        }
        return .respond(AccountResponse(members))
    }

    func response(to fault: AuthFault) -> AccountResponse {
        guard fault.kind == .business else { return fault.response }
        // Apps ask their user to sign in as before, then to link.
        if fault.code == "EMAIL_EXISTS", request.link == nil {
            var members = credential
            members["needConfirmation"] = true
            members["verifiedProvider"] = []
            return AccountResponse(members)
        }
        guard returnsCredential, ["EMAIL_EXISTS", "FEDERATED_USER_ID_ALREADY_LINKED"].contains(fault.code) else {
            return fault.response
        }
        var members = credential
        members["errorMessage"] = .string(fault.message)
        return AccountResponse(members)
    }

    /// What the provider's token says: of the client, or accepted by the service.
    private var credential: JSONObject {
        let claims = CompactToken(idToken)?.claims ?? [:]
        let rawId = claims["sub"]?.string ?? ""
        return JSONObject(present: [
            "kind": "identitytoolkit#VerifyAssertionResponse", "providerId": .string(provider),
            "federatedId": .string(ShownAccount.federatedId(provider, rawId)), "email": .text(claims["email"]?.string),
            "emailVerified": claims["email"].map { _ in .bool(Self.isTrue(claims["email_verified"])) },
            "displayName": .text(claims["name"]?.string), "fullName": .text(claims["name"]?.string),
            "firstName": .text(claims["given_name"]?.string), "lastName": .text(claims["family_name"]?.string),
            "photoUrl": .text(claims["picture"]?.string), "oauthIdToken": .string(idToken),
            "rawUserInfo": .string(String(decoding: JSONValue.object(claims).encoded, as: UTF8.self)),
        ])
    }

    /// Apple writes it as a text.
    private static func isTrue(_ value: JSONValue?) -> Bool { value?.bool ?? (value?.string == "true") }
}

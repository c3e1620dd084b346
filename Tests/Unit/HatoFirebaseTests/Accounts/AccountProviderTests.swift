import HatoModel
import Testing

@testable import HatoFirebase

/// `signInWithIdp` with a provider's ID token (spec auth §3).
@Suite struct AccountProviderTests {
    private static let claims: JSONObject = [
        "sub": "110", "email": "masuo@example.com", "email_verified": true, "name": "マスオ", "given_name": "マスオ",
        "picture": "https://example.com/m.png",
    ]
    private static let token = Native.token(claims, algorithm: "RS256")

    private func request(_ postBody: String, _ members: JSONObject = [:]) -> JSONValue {
        var body: JSONObject = ["requestUri": "http://localhost", "postBody": .string(postBody)]
        for member in members.members { body[member.name] = member.value }
        return .object(body)
    }

    private var session: JSONValue {
        var session = Native.session(isNewUser: true).object ?? [:]
        session["linked"] = false
        return .object(session)
    }

    @Test func anIDTokenOfAProviderSignsIn() {
        let trial = AccountTrial(
            "signInWithIdp", request("id_token=\(Self.token)&providerId=google.com&nonce=n-0"), [.success(session)])
        #expect(trial.method == "auth.signInWithProvider")
        #expect(trial.params == ["provider": "google.com", "idToken": .string(Self.token), "nonce": "n-0"])
        var expected: JSONObject = [
            "kind": "identitytoolkit#VerifyAssertionResponse", "providerId": "google.com",
            "federatedId": "https://accounts.google.com/110", "email": "masuo@example.com", "emailVerified": true,
            "displayName": "マスオ", "fullName": "マスオ", "firstName": "マスオ", "photoUrl": "https://example.com/m.png",
            "oauthIdToken": .string(Self.token), "localId": "u1", "isNewUser": true,
            "idToken": .string(Native.idToken), "refreshToken": "r1", "expiresIn": "3600",
        ]
        expected["rawUserInfo"] = trial.json?["rawUserInfo"]
        #expect(trial.json == .object(expected))
        let profile = trial.json?["rawUserInfo"]?.string.flatMap { try? JSONParser.parse($0) }
        #expect(profile == .object(Self.claims))
    }

    @Test func theOwnTokenLinksAndNeverSignsInElsewhere() {
        let trial = AccountTrial(
            "signInWithIdp",
            request(
                "id_token=t&providerId=APPLE.com&user="
                    + "%7B%22name%22%3A%7B%22firstName%22%3A%22A%22%2C%22lastName%22%3A%22B%22%7D%7D",
                ["idToken": "own"]))
        #expect(
            trial.params == [
                "provider": "apple.com", "idToken": "t", "displayName": "A B", "link": "own", "linkOnly": true,
            ])
    }

    @Test(
        arguments: [
            ([:], "MISSING_REQUEST_URI"), (["requestUri": "x"], "INVALID_REQUEST_URI"),
            (
                ["requestUri": "http://x", "postBody": "id_token=t"],
                "INVALID_CREDENTIAL_OR_PROVIDER_ID : The providerId is missing."
            ),
            (
                ["requestUri": "http://x", "postBody": "providerId=google.com&access_token=t"],
                "sign-in with an access token is not implemented"
            ),
            (
                ["requestUri": "http://x?providerId=google.com&code=c"],
                "sign-in with an authorisation code is not implemented"
            ),
            (
                ["requestUri": "http://x", "postBody": "providerId=saml.x&SAMLResponse=r"],
                "SAML sign-in is not implemented"
            ),
            (
                ["requestUri": "http://x", "postBody": "providerId=google.com", "sessionId": "s"],
                "pop-up and redirect sign-in is not implemented"
            ),
            (["requestUri": "http://x", "pendingToken": "p"], "pendingToken is not implemented"),
        ] as [(JSONValue, String)])
    func whatIsMissingOrNotThereIsSaidWithoutACall(body: JSONValue, message: String) {
        let trial = AccountTrial("signInWithIdp", body)
        #expect(trial.calls.isEmpty && trial.message == message)
    }

    @Test func aTokenThatIsTooLongReachesNoService() {
        func trial(_ count: Int) -> AccountTrial {
            let token = String(repeating: "t", count: count)
            return AccountTrial("signInWithIdp", request("id_token=\(token)&providerId=google.com"))
        }
        #expect(trial(16 << 10).calls.count == 1)
        let refused = trial((16 << 10) + 1)
        #expect(refused.calls.isEmpty && refused.status == 400)
        #expect(refused.message == "INVALID_IDP_RESPONSE : The provider's ID token is too long.")
    }

    @Test func parametersOfTheFragmentReplaceThoseOfTheBody() {
        let trial = AccountTrial(
            "signInWithIdp",
            [
                "requestUri": "http://x?providerId=a.b#id_token=later", "postBody": "id_token=earlier&providerId=c.d",
            ])
        #expect(trial.params == ["provider": "c.d", "idToken": "later"])
    }

    @Test func refusalsKeepTheirCodeAndNoToken() {
        func trial(_ code: RPCError.Code, _ reason: String, _ members: JSONObject = [:]) -> AccountTrial {
            AccountTrial(
                "signInWithIdp", request("id_token=\(Self.token)&providerId=google.com", members),
                [.refused(code, reason, "The provider's ID token is refused: it has expired")])
        }
        #expect(
            trial(.unauthenticated, "INVALID_IDP_RESPONSE").message
                == "INVALID_IDP_RESPONSE : The provider's ID token is refused: it has expired")
        #expect(
            trial(.failedPrecondition, "OPERATION_NOT_ALLOWED").message
                == "OPERATION_NOT_ALLOWED : The identity provider configuration is not found.")
        #expect(
            trial(.alreadyExists, "FEDERATED_USER_ID_ALREADY_LINKED", ["idToken": "own"]).message
                == "FEDERATED_USER_ID_ALREADY_LINKED")
        #expect(trial(.invalidArgument, "INVALID_PROVIDER_ID").message == "INVALID_PROVIDER_ID")
        #expect(!trial(.unauthenticated, "MISSING_OR_INVALID_NONCE").text.contains(Self.token))
        #expect(trial(.unavailable, "provider_unavailable").status == 503)
    }

    @Test func anAddressOfAnotherAccountNeedsItsSignInFirst() {
        let trial = AccountTrial(
            "signInWithIdp", request("id_token=\(Self.token)&providerId=google.com"),
            [.refused(.alreadyExists, "EMAIL_EXISTS")])
        #expect(trial.status == 200 && trial.json?["needConfirmation"] == true)
        #expect(trial.json?["email"] == "masuo@example.com" && trial.json?["idToken"] == nil)
        let link = AccountTrial(
            "signInWithIdp", request("id_token=\(Self.token)&providerId=google.com", ["idToken": "own"]),
            [.refused(.alreadyExists, "EMAIL_EXISTS")])
        #expect(link.status == 400 && link.message == "EMAIL_EXISTS")
    }

    @Test func aLinkThatIsRefusedReturnsTheCredentialWhereItIsWanted() {
        let trial = AccountTrial(
            "signInWithIdp",
            request("id_token=\(Self.token)&providerId=google.com", ["idToken": "own", "returnIdpCredential": true]),
            [.refused(.alreadyExists, "FEDERATED_USER_ID_ALREADY_LINKED")])
        #expect(trial.status == 200 && trial.json?["errorMessage"] == "FEDERATED_USER_ID_ALREADY_LINKED")
        #expect(trial.json?["oauthIdToken"] == .string(Self.token))
    }
}

import HatoModel
import Testing

@testable import HatoFirebase

/// No secret stands in an error, or in the description of a value.
@Suite struct AccountSecretTests {
    private static let secret = "hunter2-SECRET"

    private func shown(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value)" + String(reflecting: value) + dumped
    }

    @Test func requestsAndExchangesShowNoSecret() throws {
        let body: JSONValue = [
            "idToken": .string(Self.secret), "email": "a@b.c", "password": .string(Self.secret),
            "oobCode": .string(Self.secret),
            "token": .string(Self.secret), "requestUri": "http://x",
            "postBody": .string("providerId=a.b&id_token=\(Self.secret)"), "newPassword": .string(Self.secret),
            "requestType": "VERIFY_EMAIL",
        ]
        for name in [
            "signUp", "signInWithPassword", "signInWithCustomToken", "signInWithEmailLink", "signInWithIdp", "lookup",
            "update",
            "delete", "sendOobCode", "resetPassword",
        ] {
            for context in [AccountContext.test, .emulator] {
                let request = AccountRequest.client(name, body).with { $0.authorization = nil }
                let (exchange, step) = try #require(AccountExchange.begin(request, context))
                for value in [request, exchange, step] as [Any] {
                    #expect(!shown(value).contains(Self.secret), "\(name)")
                }
                if case .call(let call) = step { #expect(!shown(call).contains(Self.secret)) }
            }
        }
    }

    @Test func credentialsOfAdministratorsShowNothing() throws {
        let request = AccountRequest.administrator("POST", "/accounts:lookup", ["localId": ["u"]])
            .with { $0.authorization = "Bearer \(Self.secret)" }
        let (exchange, step) = try #require(AccountExchange.begin(request, .test))
        guard case .call(let call) = step else {
            Issue.record("no call")
            return
        }
        for value in [request, exchange, step, call, call.identity, AccountCaller.administrator(Self.secret)] as [Any] {
            #expect(!shown(value).contains(Self.secret))
        }
        #expect(call.params(administratorKey: nil)?["auth"] == .string(Self.secret))
    }

    @Test func responsesAndKeptCodesShowNothing() {
        let response = AccountTrial(
            "signInWithPassword", ["email": "a@b.c", "password": "p"], [.success(Native.session())]
        ).response
        #expect(response != nil && !shown(response as Any).contains(Native.idToken))
        let entry = OobCodeLog.Entry(
            email: "a@b.c", newEmail: nil, requestType: "PASSWORD_RESET", code: Self.secret, link: Self.secret)
        var log = OobCodeLog()
        log.apply(.remember(entry))
        #expect(!shown(entry).contains(Self.secret) && !shown(log).contains(Self.secret))
        #expect(!shown(AccountResponse.Effect.remember(entry)).contains(Self.secret))
        #expect(UnsignedToken(claims: ["sub": .string(Self.secret)]).map { !shown($0).contains(Self.secret) } == true)
    }

    /// Whatever is wrong with a request, its values do not come back in the error.
    @Test func errorsHaveNoValueOfTheRequest() {
        let secret = JSONValue.string(Self.secret)
        let bodies: [(String, JSONValue)] = [
            ("signInWithPassword", ["email": secret, "password": secret]),
            ("signUp", ["email": "a@b.c", "password": [secret]]),
            ("signInWithCustomToken", ["token": secret]), ("signInWithIdp", ["requestUri": secret]),
            ("signInWithIdp", ["requestUri": "http://x", "postBody": .string("id_token=\(Self.secret)")]),
            ("lookup", ["idToken": [secret]]), ("sendOobCode", ["requestType": secret]),
            ("update", ["idToken": secret, "disableUser": secret]),
            ("sendOobCode", ["requestType": 4, "idToken": "t", "continueUrl": secret]),
        ]
        for (name, body) in bodies {
            for context in [AccountContext.test, .emulator] {
                #expect(!AccountTrial(.client(name, body), context).text.contains(Self.secret), "\(name)")
            }
        }
        let json = AccountTrial(
            AccountRequest("POST", "/v1/accounts:lookup?key=k", body: Array("{\"idToken\":\(Self.secret)}".utf8)))
        #expect(json.status == 400 && !json.text.contains(Self.secret))
        let token = AccountTrial(
            AccountRequest("POST", "/v1/token?key=k", body: Array("grant_type=\(Self.secret)".utf8)))
        #expect(token.status == 400 && !token.text.contains(Self.secret))
    }
}

import HatoModel
import Testing

@testable import HatoFirebase

/// What the errors of the service are over HTTP (spec auth §1; protocol §3).
@Suite struct AuthErrorsTests {
    private func fault(_ operation: AuthOperation, _ error: RPCError) -> AuthFault {
        AuthErrors(operation: operation, isAdministrator: false).fault(error)
    }

    /// SDKs sign their user out at an envelope that they do not know.
    @Test(arguments: AuthOperation.allCases)
    func anOutageIsAText(operation: AuthOperation) throws {
        for error in [
            RPCError.unavailable(reason: "auth_unavailable", "x"), .unavailable(reason: "key_not_fetched", "x"),
            .unavailable(reason: "outcome_unknown", "x"), .unavailable(reason: "stopping", "x"), .internalError,
            .resourceExhausted(reason: "busy", "x", retryAfterMs: 7_000),
            RPCError(.parseError, reason: "parse_error", "x"),
        ] {
            let response = fault(operation, error).response
            #expect(response.status == 503 && response.contentType == "text/plain; charset=utf-8")
            #expect(throws: JSONError.self) { try JSONParser.parse(response.body) }
            #expect(response.retryAfterSeconds == (error.reason == "busy" ? 7 : 5))
        }
    }

    /// SDKs for servers repeat 500 and 503, also with POST: a second account would be made.
    @Test(arguments: [
        RPCError(.unavailable, reason: "connection_lost", "x"), RPCError(.unavailable, reason: "stopping", "x"),
        .outcomeUnknown(isIdempotent: false), RPCError(.unavailable, reason: "unreadable_result", "x"),
        RPCError(.internalError, reason: "bad_answer", "x"),
    ])
    func aChangeWithoutOutcomeIs504(error: RPCError) {
        for request in [AccountRequest.client("signUp", [:]), .administrator("POST", "/accounts", ["localId": "u"])] {
            let response = AccountTrial(request, .test, [.failure(error)]).response
            #expect(response?.status == 504 && response?.contentType == "text/plain; charset=utf-8")
            #expect(response?.retryAfterSeconds == nil)
            #expect(throws: JSONError.self) { try JSONParser.parse(response?.body ?? Array("{}".utf8)) }
        }
        let refresh = AccountRequest(
            "POST", "/v1/token?key=k", body: Array("grant_type=refresh_token&refresh_token=r".utf8))
        for request in [AccountRequest.client("lookup", ["idToken": "t"]), refresh] {
            let trial = AccountTrial(request, .test, [.failure(error)])
            #expect(trial.status == 503 && trial.response?.retryAfterSeconds == 5)
        }
    }

    @Test(arguments: [
        RPCError.unavailable(reason: "cannot_connect", "x"), .unavailable(reason: "forward_refused", "x"),
        .resourceExhausted(reason: "busy", "x", retryAfterMs: 1_000), .outcomeUnknown(isIdempotent: true),
    ])
    func aChangeThatWasNotBegunIs503(error: RPCError) {
        #expect(AccountTrial("signUp", [:], [.failure(error)]).status == 503)
    }

    @Test func aChangeWithAResultThatCannotBeReadIs504() {
        let password: JSONValue = ["email": "a@b.c", "password": "p"]
        #expect(AccountTrial("signInWithPassword", password, [.success([:])]).status == 504)
        #expect(AccountTrial("lookup", ["idToken": "t"], [.success([:])]).status == 503)
    }

    @Test func aCallWithoutResponseInItsTimeIs504WhereItChangesSomething() throws {
        for (name, status) in [("delete", 504), ("lookup", 503), ("update", 503)] {
            var (exchange, _) = try #require(AccountExchange.begin(.client(name, ["idToken": "t"]), .test))
            #expect(exchange.timedOut().status == status, "\(name)")
        }
    }

    @Test func limitsOfLookupAndTokenAreNoEnvelope() {
        let error = RPCError.resourceExhausted(reason: "TOO_MANY_ATTEMPTS_TRY_LATER", "x", retryAfterMs: 1)
        for operation in AuthOperation.allCases {
            let isText = operation == .lookup || operation == .token
            let response = fault(operation, error).response
            #expect(response.status == (isText ? 503 : 400), "\(operation)")
            #expect(response.retryAfterSeconds == 1)
        }
    }

    @Test func aMethodThatIsNotThereIs501ByName() {
        let error = RPCError(.methodNotFound, reason: "method_not_found", "x")
        let response = fault(.signInWithCustomToken, error).response
        #expect(response.status == 501)
        #expect(String(decoding: response.body, as: UTF8.self).contains("signInWithCustomToken is not implemented"))
    }

    @Test func wrongParamsAreAnInvalidArgument() {
        let error = RPCError.invalidParams("email", "email: secret-text")
        let response = fault(.signUp, error).response
        #expect(response.status == 400)
        #expect(!String(decoding: response.body, as: UTF8.self).contains("secret-text"))
        #expect(
            fault(.batchGet, .resourceExhausted(reason: "too_big", "x")).kind
                == .request(status: 400, canonical: "INVALID_ARGUMENT"))
    }

    /// Only a code stands in front, whatever the service says.
    @Test(arguments: ["", "no_code", "SPACE HERE", "\r\nX: 1", "<b>", String(repeating: "A", count: 100)])
    func aReasonThatIsNoCodeIsNotShown(reason: String) {
        let fault = fault(.signUp, RPCError(.failedPrecondition, reason: reason, "secret-text"))
        #expect(fault.kind == .outage)
    }

    @Test func textsOfTheServiceAreShownForFewReasons() {
        #expect(
            fault(.signUp, RPCError(.alreadyExists, reason: "EMAIL_EXISTS", "masuo@example.com is taken")).message
                == "EMAIL_EXISTS")
        #expect(
            fault(.update, RPCError(.invalidArgument, reason: "WEAK_PASSWORD", "Too short")).message
                == "WEAK_PASSWORD : Too short")
        #expect(
            fault(.updateConfig, RPCError(.invalidArgument, reason: "INVALID_SETTING", "It is fixed")).message
                == "INVALID_CONFIG : It is fixed")
    }

    @Test func anOutcomeAfterTheEndIsAnOutage() throws {
        var (exchange, _) = try #require(AccountExchange.begin(.client("lookup", ["idToken": "t"]), .test))
        let steps = [exchange.received(.success(Native.masuo)), exchange.received(.success(Native.masuo))]
        let statuses = steps.map { step -> Int? in
            guard case .respond(let response) = step else { return nil }
            return response.status
        }
        #expect(statuses == [200, 503])
    }
}

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

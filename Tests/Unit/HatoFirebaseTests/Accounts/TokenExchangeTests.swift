import HatoModel
import Testing

@testable import HatoFirebase

/// The token endpoint (spec auth §3).
@Suite struct TokenExchangeTests {
    private func request(_ body: String, _ type: String? = nil) -> AccountRequest {
        AccountRequest("POST", "/securetoken.googleapis.com/v1/token?key=k", body: Array(body.utf8))
            .with { $0.contentType = type }
    }

    @Test(arguments: [
        ("grant_type=refresh_token&refresh_token=r%2B1", "application/x-www-form-urlencoded"),
        ("grantType=refresh_token&refreshToken=r%2B1", "application/x-www-form-urlencoded; charset=utf-8"),
        ("grant_type=refresh_token&refresh_token=r%2B1", nil),
        (#"{"grantType":"refresh_token","refreshToken":"r+1"}"#, "application/json; charset=UTF-8"),
        (#"{"grant_type":"refresh_token","refresh_token":"r+1"}"#, "application/json"),
        (#" {"grantType":"refresh_token","refreshToken":"r+1","x":[1]}"#, nil),
    ])
    func aFormOrJSONInEitherCaseIsRead(body: String, type: String?) {
        let trial = AccountTrial(request(body, type), .test, [.success(Native.session())])
        #expect(trial.method == "auth.refresh" && trial.params == ["refreshToken": "r+1"])
        #expect(
            trial.json == [
                "access_token": .string(Native.idToken), "expires_in": "3600", "token_type": "Bearer",
                "refresh_token": "r1",
                "id_token": .string(Native.idToken), "user_id": "u1", "project_id": "12345",
            ])
    }

    @Test(arguments: [
        ("", "MISSING_GRANT_TYPE"), ("{}", "MISSING_GRANT_TYPE"), ("grant_type=", "MISSING_GRANT_TYPE"),
        (#"{"grantType":null}"#, "MISSING_GRANT_TYPE"), ("{", "MISSING_GRANT_TYPE"), ("[1]", "MISSING_GRANT_TYPE"),
        ("grant_type=authorization_code&code=c", "INVALID_GRANT_TYPE"), (#"{"grantType":5}"#, "INVALID_GRANT_TYPE"),
        ("grant_type=refresh_token", "MISSING_REFRESH_TOKEN"),
        (#"{"grantType":"refresh_token","refreshToken":""}"#, "MISSING_REFRESH_TOKEN"),
        (#"{"grantType":"refresh_token","refreshToken":7}"#, "INVALID_REFRESH_TOKEN"),
        (#"{"grantType":"refresh_token","refreshToken":["r"]}"#, "INVALID_REFRESH_TOKEN"),
    ])
    func whatIsMissingOrUnknownIsSaidWithoutACall(body: String, message: String) {
        let trial = AccountTrial(request(body))
        #expect(trial.calls.isEmpty && trial.status == 400 && trial.message == message)
    }

    @Test func aHugeTokenOrBodyIsRefused() {
        let long = String(repeating: "r", count: 20_000)
        #expect(
            AccountTrial(request("grant_type=refresh_token&refresh_token=\(long)")).message == "INVALID_REFRESH_TOKEN")
        var context = AccountContext.test
        context.limits.bodyBytesMax = 1_000
        #expect(
            AccountTrial(request("grant_type=refresh_token&refresh_token=\(long)"), context).message
                == "MISSING_GRANT_TYPE")
    }

    @Test(arguments: [
        (RPCError.Code.unauthenticated, "INVALID_REFRESH_TOKEN", "INVALID_REFRESH_TOKEN"),
        (.unauthenticated, "TOKEN_EXPIRED", "TOKEN_EXPIRED"), (.unauthenticated, "USER_DISABLED", "USER_DISABLED"),
        (.notFound, "USER_NOT_FOUND", "USER_NOT_FOUND"),
        (.invalidArgument, "MISSING_REFRESH_TOKEN", "MISSING_REFRESH_TOKEN"),
        (.invalidParams, "invalid_params", "INVALID_REFRESH_TOKEN"),
    ])
    func refusalsAreThoseOfTheSpecification(code: RPCError.Code, reason: String, message: String) {
        let trial = AccountTrial(request("grant_type=refresh_token&refresh_token=r"), .test, [.refused(code, reason)])
        #expect(trial.status == 400 && trial.message == message)
    }

    @Test(arguments: [
        RPCError.unavailable(reason: "store_closed", "x"), RPCError.unavailable(reason: "auth_unavailable", "x"),
        .internalError,
        RPCError.resourceExhausted(reason: "TOO_MANY_ATTEMPTS_TRY_LATER", "x", retryAfterMs: 2_000),
        RPCError.resourceExhausted(reason: "busy", "x", retryAfterMs: 2_000),
        RPCError.resourceExhausted(reason: "too_big", "x"),
        RPCError(.methodNotFound, reason: "method_not_found", "x"), RPCError(.failedPrecondition, reason: "other", "x"),
        RPCError(.permissionDenied, reason: "permission_denied", "x"),
        RPCError(.parseError, reason: "parse_error", "x"),
    ])
    func everyOtherErrorIsNoEnvelope(error: RPCError) {
        let trial = AccountTrial(request("grant_type=refresh_token&refresh_token=r"), .test, [.failure(error)])
        #expect(trial.status == 503 && trial.json == nil)
        #expect(trial.response?.contentType.hasPrefix("text/plain") == true)
        #expect((trial.response?.retryAfterSeconds ?? 0) >= 1)
    }

    @Test func aResultThatCannotBeReadIsAnOutage() {
        let trial = AccountTrial(request("grant_type=refresh_token&refresh_token=r"), .test, [.success(["uid": 5])])
        #expect(trial.status == 503 && trial.json == nil)
    }
}

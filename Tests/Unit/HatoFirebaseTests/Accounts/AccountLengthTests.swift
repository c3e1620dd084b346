import HatoModel
import Testing

@testable import HatoFirebase

/// A body that is too long refuses its request, whatever it is for: it would become a call before it is complete.
@Suite struct AccountLengthTests {
    private static let administrators: [(String, AuthOperation)] = [
        ("POST /v1/projects/demo/accounts:lookup", .lookup), ("POST /v1/projects/demo/accounts:update", .update),
        ("POST /v1/projects/demo/accounts:delete", .delete), ("POST /v1/projects/demo/accounts", .signUp),
        ("GET /v1/projects/demo/accounts:batchGet", .batchGet),
        ("POST /v1/projects/demo/accounts:batchCreate", .batchCreate),
        ("POST /v1/projects/demo/accounts:batchDelete", .batchDelete), ("POST /v1/projects/demo:queryAccounts", .query),
        ("GET /v1/projects/demo/config", .config), ("PATCH /v1/projects/demo/config", .updateConfig),
        ("POST /v1/projects/demo:createSessionCookie", .createSessionCookie),
        ("POST /v1/projects/demo/accounts:sendOobCode", .sendOobCode),
    ]

    private static let clients: [(String, AuthOperation)] = [
        ("POST /v1/accounts:signUp?key=k", .signUp),
        ("POST /v1/accounts:signInWithPassword?key=k", .signInWithPassword),
        ("POST /v1/accounts:signInWithCustomToken?key=k", .signInWithCustomToken),
        ("POST /v1/accounts:signInWithEmailLink?key=k", .signInWithEmailLink),
        ("POST /v1/accounts:signInWithIdp?key=k", .signInWithIdp), ("POST /v1/accounts:lookup?key=k", .lookup),
        ("POST /v1/accounts:update?key=k", .update), ("POST /v1/accounts:delete?key=k", .delete),
        ("POST /v1/accounts:sendOobCode?key=k", .sendOobCode),
        ("POST /v1/accounts:resetPassword?key=k", .resetPassword),
        ("POST /v1/accounts:createAuthUri?key=k", .createAuthUri),
        ("POST /v1/accounts:revokeToken?key=k", .revokeToken),
        ("GET /v1/projects?key=k", .projectConfig), ("GET /v2/passwordPolicy?key=k", .passwordPolicy),
        ("GET /v2/recaptchaConfig?key=k", .recaptchaConfig), ("GET /v1/recaptchaParams?key=k", .recaptchaParams),
        ("POST /v1/token?key=k", .token), ("GET /.well-known/jwks.json", .keys),
        ("GET /.well-known/openid-configuration", .openIDConfiguration),
        ("GET /identitytoolkit/v3/relyingparty/publicKeys", .certificates),
        ("GET /__/auth/action?mode=verifyEmail&oobCode=c", .actionPage), ("POST /__/auth/action", .actionForm),
    ]

    private static let emulator: [(String, AuthOperation)] = [
        ("GET /", .emulatorReady), ("DELETE /emulator/v1/projects/p/accounts", .emulatorDeleteAccounts),
        ("GET /emulator/v1/projects/p/config", .emulatorConfig),
        ("PATCH /emulator/v1/projects/p/config", .emulatorUpdateConfig),
        ("GET /emulator/v1/projects/p/oobCodes", .emulatorOobCodes),
        ("GET /emulator/v1/projects/p/verificationCodes", .emulatorVerificationCodes),
        ("GET /emulator/action?mode=verifyEmail&oobCode=c", .emulatorAction),
    ]

    /// The requests, in each of which a body with these bytes is read.
    private static func requests(_ context: AccountContext, body: [UInt8]) -> [(AccountRequest, AuthOperation)] {
        let rows = clients + administrators + (context.isEmulator ? emulator : [])
        return rows.map { line, operation in
            let words = line.split(separator: " ")
            var request = AccountRequest(String(words[0]), String(words[1]), body: body)
            if line.contains("/projects/demo") {
                request.authorization = "Bearer \(context.isEmulator ? "owner" : AccountTrial.key)"
            }
            return (request, operation)
        }
    }

    @Test func thereIsARequestOfEachOperation() {
        let requests = Self.requests(.emulator, body: [])
        for (request, operation) in requests {
            let route = AuthRoute.find(request.method, request.path, isEmulator: true)
            #expect(route?.target == .operation(operation), "\(request.path)")
        }
        #expect(Set(requests.map(\.1)) == Set(AuthOperation.allCases))
    }

    @Test(arguments: [AccountContext.test, .emulator])
    func aBodyThatIsTooLongNeverBecomesACall(_ context: AccountContext) {
        var context = context
        (context.limits.bodyBytesMax, context.limits.importBytesMax) = (100, 200)
        for (request, operation) in Self.requests(context, body: []) {
            let trial = AccountTrial(request.with { $0.isBodyTooLong = true }, context)
            #expect(trial.calls.isEmpty && (400..<500).contains(trial.status ?? 0), "\(operation)")
        }
        // What is read of it does not matter.
        let body = Array("{\"email\":\"masuo@example.com\",\"users\":[]}".utf8) + Array(repeating: 0x20, count: 200)
        for (request, operation) in Self.requests(context, body: body) {
            let trial = AccountTrial(request, context)
            #expect(trial.calls.isEmpty && (400..<500).contains(trial.status ?? 0), "\(operation)")
        }
    }

    @Test func aRequestThatReadsNoBodySaysHowMuchItTakes() {
        let request = AccountRequest("GET", "/.well-known/jwks.json").with { $0.isBodyTooLong = true }
        let trial = AccountTrial(request)
        #expect(trial.status == 400 && trial.json?["error"]?["status"] == "INVALID_ARGUMENT")
        #expect(trial.message == "Request payload size exceeds the limit: 262144 bytes.")
    }
}

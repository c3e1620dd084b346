import HatoModel
import Testing

@testable import HatoFirebase

/// Requests of every wrong form: each ends in a response that the specification knows.
@Suite struct AccountFuzzTests {
    private static let paths = [
        "/v1/accounts:signUp", "/v1/accounts:signInWithPassword", "/v1/accounts:signInWithCustomToken",
        "/v1/accounts:signInWithEmailLink", "/v1/accounts:signInWithIdp", "/v1/accounts:lookup", "/v1/accounts:update",
        "/v1/accounts:delete", "/v1/accounts:sendOobCode", "/v1/accounts:resetPassword", "/v1/accounts:createAuthUri",
        "/v1/token", "/v1/projects/p/accounts", "/v1/projects/p/accounts:lookup", "/v1/projects/p/accounts:update",
        "/v1/projects/p/accounts:batchCreate", "/v1/projects/p/accounts:batchDelete",
        "/v1/projects/p/accounts:batchGet",
        "/v1/projects/p/accounts:query", "/v1/projects/p:createSessionCookie", "/v2/projects/p/config",
        "/__/auth/action",
        "/emulator/action", "/emulator/v1/projects/p/config", "/emulator/v1/projects/p/accounts", "/v2/passwordPolicy",
        "/identitytoolkit/v3/relyingparty/verifyPassword", "/.well-known/jwks.json", "/", "",
        "/emulator/action?mode=signIn&oobCode=c&continueUrl=http%3A%2F%2Flocalhost%2Fx",
        "/__/auth/action?mode=signIn&oobCode=c&continueUrl=https%3A%2F%2Fchat.example.com%2Fx",
    ]

    private static let names = [
        "email", "password", "idToken", "id_token", "localId", "oobCode", "token", "requestType", "returnOobLink",
        "newEmail",
        "continueUrl", "requestUri", "postBody", "displayName", "deleteAttribute", "deleteProvider", "validSince",
        "users",
        "localIds", "force", "providerUserInfo", "customAttributes", "identifier", "continueUri", "grantType",
        "refreshToken",
        "signIn", "emailPrivacyConfig", "maxResults", "limit", "offset", "validDuration", "hashAlgorithm", "rounds",
        "newPassword",
        "linkProviderUserInfo", "federatedUserId", "providerId", "rawId", "createdAt", "mode",
    ]

    private static let texts = [
        "", "a@b.c", "t", "PASSWORD_RESET", "refresh_token", "http://localhost/x?a=1#f", "{\"uid\":\"u\"}", "EMAIL",
        "\u{0}", "日本",
        "providerId=google.com&id_token=a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1In0.", "9223372036854775808", "-1",
        "1e999",
        "%", "%zz", "..", "owner", "SCRYPT", "{}", "[", "signIn", "verifyEmail",
    ]

    private func value(_ random: inout SeededInputs, _ depth: Int = 0) -> JSONValue {
        switch random.below(depth > 2 ? 5 : 8) {
        case 0: .null
        case 1: .bool(random.below(2) == 0)
        case 2: .number([0, 1, -1, 0.5, 1e15, 9e18, -9e300][random.below(7)])
        case 3, 4: .string(random.one(of: Self.texts))
        case 5: .array((0..<random.below(4)).map { _ in value(&random, depth + 1) })
        default: .object(object(&random, depth + 1))
        }
    }

    private func object(_ random: inout SeededInputs, _ depth: Int = 0) -> JSONObject {
        var object = JSONObject()
        for _ in 0..<random.below(7) { object[random.one(of: Self.names)] = value(&random, depth + 1) }
        return object
    }

    private func request(_ random: inout SeededInputs) -> AccountRequest {
        var target = random.one(of: Self.paths)
        if random.below(8) == 0 { target += random.one(of: ["%", "/", "%00", "%FF", ":", "?", "//", "%3A"]) }
        let query = (0..<random.below(4)).map { _ in "\(random.one(of: Self.names))=\(random.one(of: Self.texts))" }
        var request = AccountRequest(
            random.one(of: ["POST", "POST", "POST", "GET", "PATCH", "DELETE", ""]),
            "\(target)?key=k&\(query.joined(separator: "&"))")
        var body = JSONValue.object(object(&random)).encoded
        if random.below(3) == 0 {
            for _ in 0..<(1 + random.below(3)) where !body.isEmpty {
                body[random.below(body.count)] = UInt8(truncatingIfNeeded: random.next())
            }
        }
        request.body = body
        request.authorization = random.one(of: [nil, "Bearer owner", "Bearer \(AccountTrial.key)", "Bearer ", "x"])
        request.contentType = random.one(of: [nil, "application/json", "application/x-www-form-urlencoded"])
        request.locale = random.one(of: [nil, "ja", "\r\n"])
        return request
    }

    /// What the service may respond: results of all kinds, wrong ones, errors.
    private func outcome(_ random: inout SeededInputs) -> Result<JSONValue, RPCError> {
        switch random.below(9) {
        case 0: .success(Native.session())
        case 1: .success(Native.masuo)
        case 2: .success(Native.settings(["hidesWhoExists": true]))
        case 3:
            .success(["users": [Native.masuo], "after": random.below(2) == 0 ? "u1" : nil, "errors": [], "imported": 1])
        case 4:
            .success([
                "type": "verifyEmail", "email": "a@b.c", "code": "c", "token": "t", "registered": true, "methods": [],
            ])
        case 5: .success(value(&random))
        case 6:
            .refused(
                RPCError.Code(rawValue: -32000 - random.below(9)),
                random.one(of: ["EMAIL_EXISTS", "x", "", "INVALID_ID_TOKEN"]))
        case 7: .failure(RPCError(received: .init(rawValue: 7), message: "", data: object(&random)))
        default: .refused(.unavailable, "stopping")
        }
    }

    @Test func everyRequestEndsInAResponse() {
        var statuses: [Int: Int] = [:]
        let failures = SeededInputs.failures(5_000) { random in
            let request = request(&random)
            let context = random.once(in: 2) ? AccountContext.test : .emulator
            guard var (exchange, step) = AccountExchange.begin(request, context) else { return nil }
            var calls = 0
            while case .call = step, calls < 50 {
                calls += 1
                step = exchange.received(outcome(&random))
            }
            guard case .respond(let response) = step else { return nil }
            statuses[response.status, default: 0] += 1
            return problem(response)
        }
        #expect(failures.isEmpty, "\(failures)")
        // A run in which everything is refused would show nothing.
        guard SeededInputs.count(5_000) >= 5_000 else { return }
        for status in [200, 303, 400, 401, 404, 503] { #expect(statuses[status] != nil, "no \(status)") }
    }

    private func problem(_ response: AccountResponse) -> String? {
        guard [200, 303, 400, 401, 403, 404, 501, 503, 504].contains(response.status) else {
            return "status \(response.status)"
        }
        let isJSON = (try? JSONParser.parse(response.body)) != nil
        if response.contentType.hasPrefix("application/json") != isJSON { return "a body of another type" }
        if [503, 504].contains(response.status), isJSON { return "an outage with JSON" }
        let isHeader = response.location?.utf8.allSatisfy { (0x21...0x7E).contains($0) } ?? true
        return isHeader ? nil : "a location that is no header"
    }
}

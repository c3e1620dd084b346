import HatoModel
import Testing

@testable import HatoFirebase

/// Plays an account operation: the request, the outcomes of its calls in their order, and the response in the end.
struct AccountTrial {
    /// The calls that the exchange made.
    private(set) var calls: [NativeCall] = []
    /// Nil while a call has no outcome, and for a path that is none.
    private(set) var response: AccountResponse?

    static let key = "an-administrator-key-of-32-bytes"

    /// - Parameter outcomes: of the calls, one after another.
    init(_ request: AccountRequest, _ context: AccountContext = .test, _ outcomes: [Result<JSONValue, RPCError>] = []) {
        guard var (exchange, step) = AccountExchange.begin(request, context) else { return }
        var outcomes = outcomes[...]
        while case .call(let call) = step {
            calls.append(call)
            check(call)
            guard let outcome = outcomes.popFirst() else { return }
            step = exchange.received(outcome)
        }
        if case .respond(let response) = step { self.response = response }
        #expect(outcomes.isEmpty, "an outcome was not asked for")
    }

    /// A request of a client with an API key, to a path of version 1.
    init(
        _ name: String, _ body: JSONValue, _ outcomes: [Result<JSONValue, RPCError>] = [],
        in context: AccountContext = .test
    ) {
        self.init(.client(name, body), context, outcomes)
    }

    /// Every call is one that the service would read, but the one that asks whether it accepts a key.
    private func check(_ call: NativeCall) {
        if call.method == Auth.Users.Import.method, call.params == [:] { return }
        let method = Auth.methods.first { $0.method == call.method }
        #expect(method != nil, "\(call.method) does not exist")
        do { _ = try method?.decode(call.params) } catch { Issue.record("\(call.method): \(error.message)") }
    }

    var method: String? { calls.last?.method }
    var params: JSONValue? { calls.last.map { .object($0.params) } }
    var status: Int? { response?.status }

    /// The body as JSON; nil for what is none.
    var json: JSONValue? { response.flatMap { try? JSONParser.parse($0.body) } }
    /// The message of an error.
    var message: String? { json?["error"]?["message"]?.string }
    /// The body as text.
    var text: String { response.map { String(decoding: $0.body, as: UTF8.self) } ?? "" }
}

extension AccountRequest {
    static func client(_ name: String, _ body: JSONValue) -> AccountRequest {
        AccountRequest("POST", "/v1/accounts:\(name)?key=fake", body: body.encoded)
    }

    static func administrator(_ method: String, _ path: String, _ body: JSONValue? = nil) -> AccountRequest {
        var request = AccountRequest(method, "/v1/projects/demo\(path)", body: body?.encoded ?? [])
        request.authorization = "Bearer \(AccountTrial.key)"
        return request
    }

    func with(_ change: (inout AccountRequest) -> Void) -> AccountRequest {
        var request = self
        change(&request)
        return request
    }
}

extension AccountContext {
    static let test = AccountContext(project: "demo", origin: "http://127.0.0.1:7700")

    static var emulator: AccountContext {
        var context = test
        context.isEmulator = true
        context.sessionId = "abcdefghijklmnopqrstuvwxyz0"
        return context
    }
}

extension Result where Success == JSONValue, Failure == RPCError {
    /// An error with this reason.
    static func refused(_ code: RPCError.Code, _ reason: String, _ message: String = "") -> Self {
        .failure(RPCError(code, reason: reason, message))
    }
}

/// Results of the service.
enum Native {
    /// A token with these claims, and a signature that nothing here verifies.
    static func token(_ claims: JSONObject, algorithm: String = "ES256") -> String {
        CompactToken.text(header: ["alg": .string(algorithm), "kid": "k1"], claims: claims) + "c2lnbmF0dXJl"
    }

    static let idToken = token([
        "sub": "u1", "email": "masuo@example.com", "email_verified": true, "name": "マスオさん",
    ])

    static func session(isNewUser: Bool = false, idToken: String = Native.idToken) -> JSONValue {
        [
            "uid": "u1", "idToken": .string(idToken), "refreshToken": "r1", "expiresIn": 3600,
            "isNewUser": .bool(isNewUser),
        ]
    }

    static func account(_ uid: String = "u1", _ members: JSONObject = [:]) -> JSONValue {
        var account: JSONObject = [
            "uid": .string(uid), "emailVerified": false, "disabled": false, "createdAt": 1_795_000_000_000,
            "validSince": 1_795_000_000, "providerUserInfo": [],
        ]
        for member in members.members { account[member.name] = member.value }
        return .object(account)
    }

    static let masuo = account(
        "u1",
        [
            "email": "masuo@example.com", "displayName": "マスオさん", "lastLoginAt": 1_795_000_000_123,
            "passwordUpdatedAt": 1_795_000_000_001,
            "providerUserInfo": [
                [
                    "providerId": "password", "rawId": "masuo@example.com", "email": "masuo@example.com",
                    "displayName": "マスオさん",
                ]
            ],
        ])

    static func settings(_ members: JSONObject = [:]) -> JSONValue {
        var settings: JSONObject = [
            "signUp": "open", "anonymous": true, "passwordSignIn": true, "passwordLengthMin": 15, "codeSignIn": true,
            "continueDomains": ["chat.example.com"], "providers": ["google.com"],
        ]
        for member in members.members { settings[member.name] = member.value }
        return .object(settings)
    }
}

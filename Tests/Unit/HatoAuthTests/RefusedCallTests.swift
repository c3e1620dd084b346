import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Testing

@testable import HatoAuth

/// Every refusal names the parameter and what is right, and nothing of the call is done.
@Suite(.timeLimit(.minutes(10)))
struct RefusedCallTests {
    private static let administratorKey = "administrator-key-0123456789-0123456789"

    /// Right types with wrong contents, most beside members that are right.
    private static let wrongContents: [(method: String, params: JSONObject, parameter: String)] = [
        ("auth.signUp", ["email": "x", "password": "sazae-and-friends"], "email"),
        ("auth.signUp", ["email": "b@example.com", "password": "short"], "password"),
        ("auth.signUp", ["username": "b", "password": "sazae-and-friends"], "username"),
        ("auth.signUp", ["displayName": "a\nb"], "displayName"),
        ("auth.signIn", ["email": "a@example.com", "username": "a", "password": "sazae-and-friends"], "username"),
        ("auth.users.create", ["uid": "a\nb", "email": "b@example.com"], "uid"),
        ("auth.users.create", ["email": "b@example.com", "photoUrl": "a\nb"], "photoUrl"),
        ("auth.users.create", ["email": "b@example.com", "phoneNumber": "090"], "phoneNumber"),
        ("auth.users.get", ["phoneNumber": "090"], "phoneNumber"),
        ("auth.users.create", ["email": "b@example.com", "customAttributes": "{"], "customAttributes"),
        ("auth.users.create", ["email": "b@example.com", "customAttributes": "{\"iss\":1}"], "customAttributes"),
        ("auth.users.update", ["uid": "masuo", "displayName": "B", "email": "x"], "email"),
        ("auth.users.update", ["uid": "masuo", "displayName": "B", "disabled": true, "password": "x"], "password"),
        ("auth.users.update", ["uid": "masuo", "displayName": "B", "deleteAttributes": ["uid"]], "deleteAttributes.0"),
        ("auth.account.update", ["displayName": "B", "photoUrl": ""], "photoUrl"),
        ("auth.users.get", ["uid": "masuo", "email": "a@example.com"], "uid"),
        ("auth.users.list", ["limit": 1_001], "limit"),
        ("auth.users.list", ["after": "\n"], "after"),
        ("auth.users.export", ["limit": 0], "limit"),
        ("auth.users.import", ["users": []], "users"),
        ("auth.users.import", ["users": [["uid": "a"], ["uid": "a"]]], "users"),
        ("auth.users.import", ["users": [["uid": "a", "passwordHash": "AAAA"]]], "hashAlgorithm"),
        ("auth.users.import", ["users": [["uid": "a"]], "hashAlgorithm": "SHA1", "rounds": 9_000], "rounds"),
        ("auth.settings.set", ["anonymous": false, "emailDomains": ["example.com", "x"]], "emailDomains"),
        ("auth.settings.set", ["anonymous": false, "passwordLengthMin": 0], "passwordLengthMin"),
        ("auth.settings.set", ["anonymous": false, "recentSignInSeconds": -1], "recentSignInSeconds"),
        ("auth.signUp", ["label": ""], "label"),
        ("auth.signIn", ["email": "a@example.com", "password": "sazae-and-friends", "label": "a\n"], "label"),
        ("auth.sessions.list", [:], "uid"),
        ("auth.sessions.end", ["uid": "masuo"], "session"),
        ("auth.sessions.end", ["uid": "masuo", "session": "x", "others": true], "session"),
        ("auth.sessions.fork", ["refreshToken": "x", "label": " "], "label"),
        ("auth.code.request", ["type": "invite"], "type"),
        ("auth.code.request", ["type": "passwordReset", "email": "x", "returnCode": true], "email"),
        ("auth.code.request", ["type": "passwordReset", "continueUrl": "x"], "continueUrl"),
        ("auth.code.request", ["type": "passwordReset", "locale": "ja\n"], "locale"),
        ("auth.code.request", ["type": "changeEmail", "email": "a@example.com", "returnCode": true], "newEmail"),
        ("auth.code.check", ["code": "123456"], "email"),
        ("auth.code.check", ["code": "x"], "code"),
        ("auth.code.check", ["code": "123456", "email": "x"], "email"),
        ("auth.code.apply", ["code": "x", "newPassword": "sazae-and-friends"], "code"),
        ("auth.signInWithCode", ["email": "x", "code": "123456"], "email"),
        ("auth.signInWithCode", ["email": "a@example.com", "code": "123"], "code"),
        ("auth.signInWithCode", ["email": "a@example.com", "code": "123456", "label": ""], "label"),
        ("auth.users.invite", ["email": "x", "returnCode": true], "email"),
        ("auth.users.invite", ["email": "b@example.com", "uid": "a\nb", "returnCode": true], "uid"),
        ("auth.users.invite", ["email": "b@example.com", "displayName": "", "returnCode": true], "displayName"),
        ("auth.users.invite", ["email": "b@example.com", "continueUrl": "x"], "continueUrl"),
        ("auth.users.invite", ["email": "b@example.com", "locale": ""], "locale"),
        ("auth.customToken.create", ["uid": "a\nb"], "uid"),
        ("auth.customToken.create", ["uid": "a", "claims": ["iss": "x"]], "claims"),
        ("auth.customToken.signers.set", ["email": "x", "publicKey": "x"], "email"),
        ("auth.customToken.signers.set", ["email": "a@example.com", "publicKey": "x"], "publicKey"),
        ("auth.customToken.signers.list", ["limit": 0], "limit"),
        ("auth.signInWithCustomToken", ["token": ""], "token"),
        ("auth.signInWithCustomToken", ["token": "x", "label": ""], "label"),
        ("auth.sessions.list", ["uid": "masuo", "limit": 0], "limit"),
        ("auth.sessions.list", ["uid": "masuo", "after": "x"], "after"),
        ("auth.mail.list", ["limit": 0], "limit"),
        ("auth.mail.list", ["after": "x"], "after"),
        ("auth.mail.replay", [:], "mail"),
        ("auth.mail.drop", ["mail": "x", "all": true], "mail"),
        ("auth.settings.set", ["anonymous": false, "continueDomains": ["example.com", "x/y"]], "continueDomains"),
    ]

    @Test func refusedCallsSayWhatIsRightAndDoNothing() async throws {
        let store = try MemoryStore()
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 4, r: 1, p: 1)
        let service = try await AuthService.open(
            configuration, store: store,
            administratorKeys: try #require(AdministratorKeys(keys: [Self.administratorKey])),
            environment: AuthEnvironment(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        let server = try await AuthServer.start(service, RPCServerConfiguration(service: "auth", version: "0"))
        let client = RPCClient(
            RPCClientConfiguration(host: server.host, port: server.port).with(credential: Self.administratorKey))
        _ = try await client.call(
            method: "auth.users.create",
            params: ["uid": "masuo", "email": "a@example.com", "password": "sazae-and-friends"])
        let before = try await rows(store)
        for call in try Auth.methods.flatMap(wrongTypes) + Self.wrongContents {
            var params = call.params
            params["auth"] = .string(Self.administratorKey)
            if call.method.hasPrefix("auth.account.") { params["as"] = ["uid": "masuo"] }
            let name = "\(call.method), \(call.params)"
            let error = await wireError { try await client.call(method: call.method, params: params) }
            #expect(error?.code == .invalidParams || error?.code == .invalidArgument, "\(name)")
            #expect(error?.data["parameter"]?.string == call.parameter, "\(name)")
            let method = Auth.methods.first { $0.method == call.method }
            #expect(error.flatMap { method?.declares($0) } == true, "\(name): \(error?.reason ?? "")")
            let isSecret = ["password", "newPassword"].contains(call.parameter)
            let saysWhatIsRight = isSecret || error?.message.contains("e.g. ") == true
            #expect(saysWhatIsRight, "\(name): \(error?.message ?? "")")
        }
        #expect(try await rows(store) == before)
        await client.close()
        await server.shutdown(grace: .seconds(10))
    }

    /// A value of another type for each parameter, and a parameter that there is not.
    private func wrongTypes(_ method: any RPCRequest.Type) throws -> [(String, JSONObject, String)] {
        func calls<Request: RPCRequest>(_: Request.Type) throws -> [(String, JSONObject, String)] {
            let example = Request.example.request.members
            let properties = try #require(Request.schema["properties"]?.object)
            let wrong = (properties.members + [JSONObject.Member("noSuch", [:])]).map { member in
                var params = example
                params[member.name] = member.value["type"] == "array" ? 5 : [5]
                return (Request.method, params, member.name)
            }
            return wrong
        }
        return try calls(method)
    }

    private func rows(_ store: any Store) async throws -> [[UInt8]: [UInt8]] {
        try await store.read { rows in
            var all: [[UInt8]: [UInt8]] = [:]
            try rows.rows(KeyRange(lower: [], upper: nil)) { key, value in
                all[key] = value
                return true
            }
            return all
        }
    }
}

import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoAuth

/// What the audit says of what has happened.
@Suite(.timeLimit(.minutes(10)))
struct AuditTests {
    private typealias Entry = Auth.Audit.Entry

    private func entries(
        _ bench: AuthBench, _ change: (inout Auth.Audit.List) -> Void = { _ in }
    ) async throws -> [Entry] {
        var request = Auth.Audit.List()
        change(&request)
        return try await AuditMethods(service: bench.service).entries(request).entries
    }

    /// The newest entry.
    private func newest(_ bench: AuthBench) async throws -> Entry { try #require(try await entries(bench).first) }

    // MARK: What is recorded

    @Test func signUpsAndSignInsAreRecordedWithTheirSession() async throws {
        let bench = try await AuthBench.open()
        let home = CallOrigin(address: ClientAddress("2001:db8:1:2:3::4"))
        var signUp = Auth.SignUp(email: "masuo@example.com", password: AuthBench.password)
        signUp.label = "マスオさんのiPhone"
        let session = try await bench.service.signUps.signUp(signUp, home)
        let first = try await newest(bench)
        #expect(first.type == .signedUp && first.uid == session.uid && first.time == bench.now)
        #expect(first.label == "マスオさんのiPhone" && first.provider == "password" && first.by == nil)
        #expect(first.address == home.address?.network)
        #expect(first.session == (try await bench.claims(session.idToken))["sid"]?.string)
        bench.pass(seconds: 1)
        _ = try await bench.signIn()
        _ = try await bench.signIn(customToken: try bench.customToken(session.uid))
        #expect(try await entries(bench).map(\.type) == [.signedIn, .signedIn, .signedUp])
        #expect(try await newest(bench).provider == "custom")
        _ = try await bench.signIn(customToken: try bench.customToken("new"))
        #expect(try await newest(bench).type == .signedUp)
    }

    @Test func failuresAreRecordedWithTheReasonThatCallersDoNotLearn() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        for email in ["masuo@example.com", "nobody@example.com"] {
            let error = await wireError { try await bench.signIn(email, "wrong", from: "203.0.113.7") }
            #expect(error?.reason == "INVALID_LOGIN_CREDENTIALS")
        }
        _ = await wireError { try await bench.signIn(customToken: "x") }
        await bench.service.auditWriter.write()
        let failures = try await entries(bench) { $0.type = .signInFailed }
        #expect(
            failures.map(\.reason) == ["INVALID_CUSTOM_TOKEN", "EMAIL_NOT_FOUND", "INVALID_PASSWORD"])
        #expect(failures.map(\.uid) == [nil, nil, session.uid])
        let name = try #require(failures[2].email)
        #expect(name != failures[1].email && !name.contains("masuo"))
        _ = await wireError { try await bench.signIn("masuo@example.com", "wrong") }
        await bench.service.auditWriter.write()
        #expect(try await newest(bench).email == name)
    }

    @Test func changesOfCredentialsAreRecorded() async throws {
        let bench = try await AuthBench.open()
        let anonymous = try await bench.anonymous()
        let session = try await bench.upgrade(anonymous, "masuo@example.com")
        #expect(try await entries(bench).map(\.type).contains(.linked))
        bench.pass(seconds: 1)
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: session.refreshToken))
        var revoke = Auth.Users.Update(uid: session.uid)
        revoke.disabled = true
        _ = try await bench.service.users.updateUser(revoke)
        #expect(try await newest(bench).type == .disabled)
        bench.pass(seconds: 1)
        revoke.disabled = false
        _ = try await bench.service.users.updateUser(revoke)
        #expect(Set(try await entries(bench) { $0.limit = 2 }.map(\.type)) == [.enabled, .revoked])
        bench.pass(seconds: 1)
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid))
        #expect(try await newest(bench).type == .deleted)
    }

    @Test func lateAndReusedRefreshTokensAreRecorded() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let second = try await bench.refresh(first.refreshToken)
        bench.pass(seconds: 60)
        _ = try await bench.refresh(first.refreshToken)
        let late = try await newest(bench)
        #expect(late.type == .refreshLate && late.uid == first.uid)
        _ = try await bench.refresh(second.refreshToken)
        bench.pass(seconds: 60)
        _ = await wireError { try await bench.refresh(first.refreshToken) }
        let reused = try await newest(bench)
        #expect(reused.type == .refreshReused && reused.session == late.session)
    }

    @Test func codesAreRecordedWithTheirType() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp()
        var request = Auth.Code.Request(type: .passwordReset)
        request.email = "masuo@example.com"
        request.returnCode = true
        let code = try await bench.service.codes.request(request, CallOrigin(caller: .administrator))
        var apply = Auth.Code.Apply(code: try #require(code.code))
        apply.newPassword = "another-good-password"
        _ = try await bench.service.codes.apply(apply, CallOrigin())
        let applied = try await entries(bench) { $0.type = .codeApplied }
        #expect(applied.map(\.reason) == ["passwordReset"] && applied.map(\.uid) == [session.uid])
        _ = await wireError { try await bench.service.codes.apply(apply, CallOrigin()) }
        await bench.service.auditWriter.write()
        #expect(try await newest(bench).reason == "INVALID_OOB_CODE")
    }

    @Test func importsSettingsAndKeysAreRecorded() async throws {
        let bench = try await AuthBench.open()
        var row = Auth.Users.Row(uid: "u1")
        row.email = "u1@example.com"
        let call = AuditedCall(Auth.Users.Import.method, CallOrigin(caller: .administrator))
        _ = try await AuditedCall.$current.withValue(call) {
            try await MovingMethods(service: bench.service).importUsers(Auth.Users.Import(users: [row]))
        }
        #expect(try await newest(bench).type == .imported)
        bench.pass(seconds: 1)
        var settings = Auth.Settings.Set()
        settings.signUp = .closed
        settings.anonymous = false
        _ = try await bench.service.settings.set(settings)
        let changed = try await newest(bench)
        #expect(changed.type == .settingsChanged && changed.reason == "signUp, anonymous")
        bench.pass(seconds: 1)
        let kid = try await bench.service.keys.rotateKeys().kid
        #expect(try await newest(bench).type == .keysRotated)
        #expect(try await newest(bench).reason == kid)
        bench.pass(seconds: 1)
        _ = try await bench.service.keys.revokeKey(kid)
        #expect(try await newest(bench).type == .keyRevoked)
    }

    @Test func customTokensAndForksAreRecorded() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let call = AuditedCall(Auth.CustomToken.Create.method, CallOrigin(caller: .administrator))
        _ = try await AuditedCall.$current.withValue(call) {
            try await bench.service.customTokens.createToken(Auth.CustomToken.Create(uid: session.uid))
        }
        let made = try await newest(bench)
        #expect(made.type == .customTokenCreated && made.uid == session.uid)
        #expect(made.method == "auth.customToken.create")
        bench.pass(seconds: 1)
        let fork = Auth.Sessions.Fork(refreshToken: session.refreshToken, label: "Widget")
        let widget = try await bench.service.sessionList.fork(fork, CallOrigin(address: ClientAddress("192.0.2.1")))
        let forked = try await newest(bench)
        #expect(forked.type == .sessionForked && forked.uid == session.uid && forked.label == "Widget")
        #expect(forked.session == (try await bench.claims(widget.idToken))["sid"]?.string)
        #expect(forked.address == "192.0.2.1" && forked.provider == "password")
    }

    @Test func theSignerOfACustomTokenIsRecorded() async throws {
        let bench = try await AuthBench.open { $0.limits.signInsPerAddress = RateLimit(burst: 1, perMinute: 1) }
        let account = try ServiceAccount()
        try await bench.register(account)
        let token = try account.sign(ServiceAccount.claims("u1", at: bench.now))
        bench.pass(seconds: 1)
        _ = try await bench.signIn(customToken: token, from: "192.0.2.1")
        let entry = try await newest(bench)
        #expect(entry.type == .signedUp && entry.signer == ServiceAccount.email)
        // One that the limit refuses before it is looked at.
        bench.pass(seconds: 1)
        #expect(await wireError { try await bench.signIn(customToken: token, from: "192.0.2.1") } != nil)
        await bench.service.auditWriter.write()
        #expect(try await newest(bench).reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        bench.pass(seconds: 1)
        _ = try await bench.signIn(customToken: try bench.customToken("u1"))
        #expect(try await newest(bench).signer == nil)
    }

    @Test func linksAndUnlinksAreRecorded() async throws {
        let bench = try await AuthBench.open()
        let issuer = try TestIssuer()
        try await bench.trust(issuer)
        let session = try await bench.signUp("sazae@example.com")
        bench.pass(seconds: 1)
        let linked = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = session.idToken }
        #expect(Set(try await entries(bench) { $0.limit = 2 }.map(\.type)) == [.linked, .signedIn])
        let link = try #require(try await entries(bench) { $0.type = .linked }.first)
        #expect(link.uid == session.uid && link.provider == "oidc.work")
        bench.pass(seconds: 1)
        // The second sign-in links nothing.
        _ = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = linked.session.idToken }
        #expect(try await entries(bench) { $0.type = .linked }.count == 1)
        bench.pass(seconds: 1)
        var update = Auth.Account.Update()
        update.deleteProviders = ["oidc.work", "google.com"]
        _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(session))
        let unlinked = try await newest(bench)
        #expect(unlinked.type == .unlinked && unlinked.uid == session.uid && unlinked.provider == "oidc.work")
        #expect(try await entries(bench) { $0.type = .unlinked }.count == 1)
    }

    /// As by an administrator's key: the entry says which members, and never what they were.
    @Test func changedMembersAreNamed() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        func update(_ change: (inout Auth.Users.Update) -> Void) async throws -> Entry {
            bench.pass(seconds: 1)
            var request = Auth.Users.Update(uid: session.uid)
            change(&request)
            let call = AuditedCall(Auth.Users.Update.method, CallOrigin(caller: .administrator))
            _ = try await AuditedCall.$current.withValue(call) { [request] in
                try await bench.service.users.updateUser(request)
            }
            return try await newest(bench)
        }
        let number = try await update { $0.phoneNumber = "+819012345678" }
        #expect(number.type == .updated && number.uid == session.uid && number.reason == "phoneNumber")
        let photo = try await update { $0.photoUrl = "https://example.com/masuo.png" }
        #expect(photo.type == .updated && photo.reason == "photoUrl")
        let both = try await update { ($0.displayName, $0.phoneNumber) = ("マスオさん", "+819012345679") }
        #expect(both.type == .updated && both.reason == "displayName, phoneNumber")
        let updates = try await entries(bench) { $0.type = .updated }
        #expect(updates.count == 3)
        let gone = try await update { $0.deleteProviders = ["phone"] }
        #expect(gone.type == .updated && gone.reason == "phoneNumber")
    }

    @Test func sessionsThatExpireLeaveNoEntry() async throws {
        let bench = try await AuthBench.open { $0.keepAuditDays = 90 }
        _ = try await bench.signUp()
        bench.pass(seconds: 40 * 86_400)
        let count = try await entries(bench).count
        await bench.service.keepUpOnce()
        #expect(try await entries(bench).count == count)
    }

    // MARK: Callers

    @Test func theServiceOrTheAdministratorThatCalledIsNamed() async throws {
        let administratorKey = "administrator-key-0123456789-0123456789"
        let serviceKey = "service-key-0123456789-0123456789-0123456789"
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 4, r: 1, p: 1)
        let methods: Set<String> = ["auth.users.create", "auth.users.update", "auth.account.update", "auth.mail.drop"]
        configuration.serviceKeys = try ServiceKeys([
            .init(name: "backend", key: serviceKey, methods: methods, mayUseAs: true)
        ])
        let service = try await AuthService.open(
            configuration, store: MemoryStore(),
            administratorKeys: try #require(AdministratorKeys(keys: [administratorKey])),
            environment: AuthEnvironment(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        let server = try await AuthServer.start(service, RPCServerConfiguration(service: "auth", version: "0"))
        func client(_ credential: String?) -> RPCClient {
            let plain = RPCClientConfiguration(host: server.host, port: server.port)
            return RPCClient(credential.map { plain.with(credential: $0) } ?? plain)
        }
        let (backend, administrator, nobody) = (client(serviceKey), client(administratorKey), client(nil))
        func newest() async throws -> Entry {
            var request = Auth.Audit.List()
            request.limit = 1
            return try #require(try await administrator.call(request).entries.first)
        }
        var create = Auth.Users.Create()
        create.uid = "u1"
        create.email = "u1@example.com"
        _ = try await backend.call(create)
        let created = try await newest()
        #expect(created.type == .created && created.uid == "u1" && created.by == "service:backend")
        #expect(created.method == "auth.users.create" && created.address == "127.0.0.1")
        // With the key in the call, and in the name of a user.
        _ = try await nobody.call(
            method: "auth.account.update",
            params: ["displayName": "U", "auth": .string(serviceKey), "as": ["uid": "u1"]])
        let renamed = try await newest()
        #expect(renamed.type == .updated && renamed.by == "service:backend")
        #expect(renamed.method == "auth.account.update")
        _ = try await administrator.call(Auth.Users.Update(uid: "u1"))
        #expect(try await newest().by == "administrator")
        #expect(try await newest().type == .administered)
        _ = try await nobody.call(Auth.SignUp())
        #expect(try await newest().by == nil)
        #expect(try await newest().type == .signedUp)
        let refused = await wireError { try await nobody.call(Auth.Audit.List()) }
        #expect(refused?.code == .unauthenticated)
        for client in [backend, administrator, nobody] { await client.close() }
        await server.shutdown(grace: .seconds(10))
    }

    @Test func failuresAreWrittenByTheRunningServiceAndAtItsEnd() async throws {
        let bench = try await AuthBench.open()
        let server = try await AuthServer.start(bench.service, RPCServerConfiguration(service: "auth", version: "0"))
        let client = RPCClient(RPCClientConfiguration(host: server.host, port: server.port))
        _ = await wireError { try await client.call(Auth.SignIn(email: "a@example.com", password: "wrong")) }
        try await eventually("the failure is listed") { try await entries(bench).first?.reason == "EMAIL_NOT_FOUND" }
        #expect(try await newest(bench).address == "127.0.0.1")
        #expect(try await newest(bench).method == "auth.signIn")
        await client.close()
        await server.shutdown(grace: .seconds(10))
    }

    // MARK: Secrets

    @Test func noSecretAndNoAddressIsInTheAudit() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(username: "masuo")
        _ = await wireError { try await bench.signIn("masuo@example.com", "a-wrong-password") }
        _ = await wireError { try await bench.signIn(nil, "a-wrong-password", username: "masuo") }
        let token = try bench.customToken(session.uid)
        _ = try await bench.signIn(customToken: token)
        _ = await wireError { try await bench.signIn(customToken: token + "x") }
        _ = try await bench.refresh(session.refreshToken)
        await bench.service.auditWriter.write()
        let text = try await bench.store.read { rows in
            var text = ""
            try rows.rows(AuthKey.audits) { _, value in
                text += String(decoding: value, as: UTF8.self)
                return true
            }
            return text
        }
        #expect(text.contains("signInFailed"))
        for secret in [
            AuthBench.password, "a-wrong-password", "masuo", token, session.refreshToken, session.idToken,
        ] {
            #expect(!text.contains(secret))
        }
    }
}

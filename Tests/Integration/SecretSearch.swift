import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// What calls bring and results return in secret is in no file of a data folder or a backup, no log, no metric and no
/// audit.
@Suite(.timeLimit(.minutes(10)))
struct SecretSearch {
    private static let email = "masuo@example.com"
    private static let name = "フグ田マスオ"
    private static let webhook = "http://127.0.0.1:9/masuo"
    private static let firstPassword = "wakame-Qz7fT2xW9mR4"
    private static let newPassword = "hijiki-Lp3vB8nK1cJ6"
    private static let wrongPassword = "konbu-Yd5sG0hF2aU8e"
    private static let weakPassword = "nori-7Ax"

    @Test func dataLogsAndPagesHoldNoSecret() async throws {
        let services = try await SearchedServices()
        let client = try services.auth.client()
        var secrets = KnownSecrets()
        secrets.add("administrator key", ServingProgram.administratorKey)
        secrets.add("pepper", SearchedServices.pepper)
        secrets.add("encryption key", SearchedServices.encryptionKey)
        secrets.add("key of messages", SearchedServices.messagesKey)
        secrets.add("key of the notifier", SearchedServices.notifierKey)
        let user = try await signIns(client, &secrets)
        let codes = try await takeCodes(client, services, &secrets)
        try await takeTokens(client, user, &secrets)
        try await useOtherServices(services, user, &secrets)

        // The search finds them where they are.
        let mailed = Set(secrets.found(in: try services.mails()).map(\.name))
        #expect(codes.isSubset(of: mailed), "\(codes.subtracting(mailed))")
        let control = secrets.needles.map(\.bytes) + secrets.digits.map { Array($0.text.utf8) }
        let all = secrets.found(in: [("control", Data(control.joined(separator: [0])))])
        #expect(Set(all.map(\.name)) == secrets.names && secrets.names.count > 40)

        // All writes are in the logs of the stores, which are not compressed.
        let live = try services.files()
        check(secrets, live)
        checkData(["auth-data", "messages-data", "notifier-data"], live)
        #expect(places(#""sealed":""#, live).contains { $0.contains("/auth-data/") })
        _ = try await client.call(Auth.Backup(name: try BackupName("search")))
        let pages = try await services.pages()
        check(secrets, pages)
        checkPages(user, pages + live)
        await client.close()
        await services.stop()
        let stopped = try services.files()
        check(secrets, stopped)
        checkData(["auth-data", "auth-backups", "messages-data", "notifier-data"], stopped)
    }

    private func check(_ secrets: KnownSecrets, _ texts: [SearchedServices.Text]) {
        for found in secrets.found(in: texts) { Issue.record("\(found.name) is in \(found.place)") }
        let clear = texts.filter { $0.bytes.range(of: Data(#""d":""#.utf8)) != nil }
        #expect(clear.isEmpty, "private keys are in \(clear.map(\.name))")
    }

    private func places(_ text: String, _ texts: [SearchedServices.Text]) -> [String] {
        texts.filter { $0.bytes.range(of: Data(text.utf8)) != nil }.map(\.name)
    }

    /// What is no secret is found in the same files.
    private func checkData(_ folders: [String], _ texts: [SearchedServices.Text]) {
        for folder in folders {
            let text = folder == "notifier-data" ? Self.webhook : Self.name
            #expect(places(text, texts).contains { $0.contains("/\(folder)/") }, "\(folder)")
        }
    }

    private func checkPages(_ user: Auth.Session, _ texts: [SearchedServices.Text]) {
        #expect(places(user.uid, texts).contains("audit"))
        for service in ["auth", "messages", "notifier"] {
            #expect(places("hato_rpc_requests_total", texts).contains("metrics of \(service)"))
            #expect(places("info", texts).contains("log of \(service)"))
        }
    }

    // MARK: Calls

    /// The reason of an error that a call must get.
    private func refusal(_ body: () async throws -> some Any) async -> String? {
        let error = await #expect(throws: RPCError.self) { _ = try await body() }
        return error?.reason
    }

    /// Passwords and refresh tokens, right and wrong. Returns the newest session.
    private func signIns(_ client: RPCClient, _ secrets: inout KnownSecrets) async throws -> Auth.Session {
        secrets.add("first password", Self.firstPassword)
        secrets.add("wrong password", Self.wrongPassword)
        let signUp = Auth.SignUp(
            email: Self.email, password: Self.firstPassword, username: "masuo", displayName: Self.name)
        var session = try #require(try await client.call(signUp).session)
        secrets.add("sign-up", session)
        for number in 0..<3 {
            session = try await client.call(Auth.Refresh(refreshToken: session.refreshToken))
            secrets.add("refresh \(number)", session)
        }
        secrets.add(
            "fork", try await client.call(Auth.Sessions.Fork(refreshToken: session.refreshToken, label: "widget")))
        // A token that this service has not made ends the session.
        let forged = String(session.refreshToken.dropLast(8)) + "AAAAAAAA"
        secrets.add("forged refresh token", forged)
        #expect(await refusal { try await client.call(Auth.Refresh(refreshToken: forged)) } == "INVALID_REFRESH_TOKEN")
        let wrong = await refusal {
            try await client.call(Auth.SignIn(email: Self.email, password: Self.wrongPassword))
        }
        #expect(wrong == "INVALID_LOGIN_CREDENTIALS")
        session = try await client.call(Auth.SignIn(username: "masuo", password: Self.firstPassword))
        secrets.add("sign-in", session)
        return session
    }

    /// Codes of mails: one is used, one is not. Returns their names.
    private func takeCodes(
        _ client: RPCClient, _ services: SearchedServices, _ secrets: inout KnownSecrets
    ) async throws -> Set<String> {
        var names: Set<String> = []
        for (number, type) in [Auth.CodeType.signIn, .passwordReset].enumerated() {
            var request = Auth.Code.Request(type: type)
            request.email = Self.email
            _ = try await client.call(request)
            var mails: [Auth.Mailbox.Mail] = []
            try await eventually("mail \(number)") {
                mails = try await client.call(Auth.Mailbox.List(to: Self.email)).mails
                return mails.count > number
            }
            let mail = try #require(mails.last { $0.type == type })
            secrets.add("\(type) code", encoded: mail.code, secretBytes: 32)
            secrets.add("\(type) digits", digits: try #require(mail.digits))
            names.formUnion(["\(type) code", "\(type) digits"])
            guard type == .passwordReset else { continue }
            secrets.add("weak password", Self.weakPassword)
            secrets.add("new password", Self.newPassword)
            var apply = Auth.Code.Apply(code: try #require(mail.digits), email: Self.email)
            apply.newPassword = Self.weakPassword
            #expect(await refusal { try await client.call(apply) } == "WEAK_PASSWORD")
            apply.newPassword = Self.newPassword
            _ = try await client.call(apply)
            #expect(await refusal { try await client.call(apply) } == "INVALID_OOB_CODE")
        }
        var returned = Auth.Code.Request(type: .signIn)
        (returned.email, returned.returnCode) = ("sazae@example.com", true)
        let code = try await client.call(returned)
        secrets.add("returned code", encoded: try #require(code.code), secretBytes: 32)
        secrets.add("returned digits", digits: try #require(code.digits))
        return names
    }

    /// Tokens of a provider, of this service for others, and after the keys have rotated.
    private func takeTokens(
        _ client: RPCClient, _ user: Auth.Session, _ secrets: inout KnownSecrets
    ) async throws {
        let issuer = GivenKeysIssuer()
        var provider = issuer.provider("oidc.work")
        provider.allowsSignUp = true
        _ = try await client.call(provider)
        let token = try issuer.token("norisuke", email: "norisuke@example.com")
        secrets.add("token of a provider", token: token)
        let request = Auth.SignInWithProvider(provider: "oidc.work", idToken: token)
        secrets.add("sign-in with a provider", try await client.call(request).session)
        #expect(await refusal { try await client.call(request) } == "MISSING_OR_INVALID_NONCE")
        let custom = try await client.call(Auth.CustomToken.Create(uid: "custom-1")).token
        secrets.add("custom token", token: custom)
        let session = try await client.call(Auth.SignInWithCustomToken(token: custom))
        secrets.add("custom sign-in", session)
        let cookie = try await client.call(Auth.SessionCookie.Create(idToken: session.idToken)).sessionCookie
        secrets.add("cookie", token: cookie)
        _ = try await client.call(Auth.Keys.Rotate())
        secrets.add("after the rotation", try await client.call(Auth.Refresh(refreshToken: session.refreshToken)))
        secrets.add("new sign-in", try await client.call(Auth.SignIn(email: Self.email, password: Self.newPassword)))
    }

    /// ID tokens and keys, right and wrong, in the other services.
    private func useOtherServices(
        _ services: SearchedServices, _ user: Auth.Session, _ secrets: inout KnownSecrets
    ) async throws {
        let auth = try services.auth.client()
        let session = try await auth.call(Auth.SignIn(email: Self.email, password: Self.newPassword))
        secrets.add("sign-in for the others", session)
        let wrongKey = "wrong-key-of-the-search-0123456789abcdef"
        secrets.add("wrong key", wrongKey)
        let (messages, notifier) = (try services.messages.client(), try services.notifier.client())
        for (client, name) in [(auth, "auth"), (messages, "messages"), (notifier, "notifier")] {
            for (kind, text) in [("ID token", session.idToken.dropLast(6) + "AAAAAA"), ("key", wrongKey[...])] {
                let error = await #expect(throws: RPCError.self) {
                    try await client.call(method: "session.authenticate", params: ["auth": .string(String(text))])
                }
                #expect(error?.code == .unauthenticated, "\(kind) in \(name)")
            }
        }
        _ = try await notifier.call(
            Notifier.Devices.Register(url: Self.webhook),
            credential: session.idToken)
        try await eventually("the profile is there") {
            try await messages.call(Messages.Get(path: try TreePath("/users/\(user.uid)/name"))).value
                == .string(Self.name)
        }
        for client in [auth, messages, notifier] { await client.close() }
    }
}

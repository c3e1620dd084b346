import HatoAuth
import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import Testing

private let administratorKey = "administrator-key-0123456789-0123456789"

/// The service with its socket, and clients.
private final class WireBench: Sendable {
    let server: AuthServer
    let client: RPCClient
    let store: any Store
    let log: LogLines

    init(_ change: (inout AuthConfiguration) -> Void = { _ in }) async throws {
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 4, r: 1, p: 1)
        change(&configuration)
        let log = LogLines()
        store = try MemoryStore()
        let service = try await AuthService.open(
            configuration, store: store,
            administratorKeys: AdministratorKeys(keys: [administratorKey]) ?? .none,
            environment: AuthEnvironment(logger: Logger(label: "test") { _ in log }))
        self.log = log
        server = try await AuthServer.start(service, RPCServerConfiguration(service: "auth", version: "0"))
        client = RPCClient(RPCClientConfiguration(host: server.host, port: server.port))
    }

    func stop() async {
        await client.close()
        await server.shutdown(grace: .seconds(10))
    }
}

/// Everything that is logged, as text.
private struct LogLines: LogHandler {
    private final class Lines: Sendable { let lines = Mutex<[String]>([]) }

    private let kept = Lines()
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    var lines: [String] { kept.lines.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        kept.lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:]) \(metadata)") }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct OverTheWireTests {
    @Test func signUpSaysAcceptedAloneWhereEveryAddressIs() async throws {
        let bench = try await WireBench { configuration in
            let settings = ["mail-url": "smtp://localhost:1", "mail-tls": "none", "mail-from": "chat@example.com"]
            do { _ = try configuration.setMail { settings[$0] } } catch { Issue.record(error) }
            configuration.signUpAlwaysAccepts = true
        }
        let form: JSONObject = ["email": "masuo@example.com", "password": "sazae-and-friends"]
        #expect(try await bench.client.call(method: "auth.signUp", params: form) == ["accepted": true])
        let anonymous = try await bench.client.call(method: "auth.signUp")
        #expect(anonymous["idToken"] != nil && anonymous["accepted"] == nil)
        await bench.stop()
    }

    @Test func followersSeeTheChangesOfAccountsAndResume() async throws {
        let bench = try await WireBench()
        let user = try #require(try await bench.client.call(Auth.SignUp()).session)
        let administrator = RPCClient(
            RPCClientConfiguration(host: bench.server.host, port: bench.server.port).with(credential: administratorKey))
        let subscription = try await administrator.subscribe(Auth.Follow(after: 0))
        _ = try await bench.client.call(Auth.SignOut(refreshToken: user.refreshToken))
        _ = try await administrator.call(Auth.Users.Delete(uid: user.uid))
        func read(_ subscription: RPCSubscription, _ count: Int) async throws -> [Auth.Event] {
            var events: [Auth.Event] = []
            for try await event in subscription {
                events.append(try Auth.Event.decode(event.params))
                if events.count == count { break }
            }
            return events
        }
        let events = try await read(subscription, 3)
        #expect(events.map(\.type) == [.created, .signedOut, .deleted])
        #expect(events.allSatisfy { $0.uid == user.uid })
        let after = Auth.Follow(after: events[0].position, epoch: events[0].epoch)
        #expect(
            try await read(try await administrator.subscribe(after), 2).map(\.position)
                == events.suffix(2).map(\.position))
        _ = try await administrator.call(Auth.Unfollow(subscription: subscription.id))
        let other = Auth.Follow(after: 1, epoch: String(repeating: "0", count: 32))
        #expect(await wireError { _ = try await administrator.subscribe(other) }?.reason == "unknown_version")
        #expect(await wireError { _ = try await bench.client.subscribe(Auth.Follow()) }?.code == .unauthenticated)
        await administrator.close()
        await bench.stop()
    }

    @Test func everyDeclaredMethodIsServed() async throws {
        let bench = try await WireBench()
        let document = try await bench.client.call(method: "rpc.discover")
        let names = (document["methods"]?.array ?? []).compactMap { $0["name"]?.string }
        for method in Auth.methods { #expect(names.contains(method.method), "\(method.method)") }
        await bench.stop()
    }

    /// The other methods keep the order of their connection: an update that hashes a password is not overtaken by the
    /// next call.
    @Test func onlyHashesDocumentsAndBackupsAreSlow() async throws {
        let bench = try await WireBench()
        let document = try await bench.client.call(method: "rpc.discover")
        let slow = (document["methods"]?.array ?? []).filter { $0["x-slow"] == true }.compactMap { $0["name"]?.string }
        #expect(
            Set(slow) == ["auth.signUp", "auth.signIn", "auth.signInWithProvider", "auth.providers.set", "auth.backup"])
        await bench.stop()
    }

    @Test func sessionOfASignUpIsValidForCallsAndConnections() async throws {
        let bench = try await WireBench()
        let session = try #require(
            try await bench.client.call(
                Auth.SignUp(email: "masuo@example.com", password: AuthBench.password, displayName: "マスオさん")
            ).session)
        let own = try await bench.client.call(Auth.Account.Get(), credential: session.idToken)
        #expect(own.uid == session.uid)
        let signedIn = RPCClient(
            RPCClientConfiguration(host: bench.server.host, port: bench.server.port).with(credential: session.idToken))
        #expect(try await signedIn.call(Auth.Account.Get()).displayName == "マスオさん")
        let renewed = try await bench.client.call(Auth.Refresh(refreshToken: session.refreshToken))
        #expect(try await bench.client.call(Auth.Account.Get(), credential: renewed.idToken).uid == session.uid)
        _ = try await bench.client.call(Auth.SignOut(refreshToken: renewed.refreshToken))
        let over = await wireError { try await bench.client.call(Auth.Refresh(refreshToken: renewed.refreshToken)) }
        #expect(over?.reason == "TOKEN_EXPIRED")
        await signedIn.close()
        await bench.stop()
    }

    @Test func aDryRunOfASignUpHasAnEmptyResult() async throws {
        let bench = try await WireBench()
        var request = Auth.SignUp(email: "masuo@example.com", password: AuthBench.password)
        request.dryRun = true
        let checked = try await bench.client.call(request)
        #expect(checked.session == nil && checked.json == [:])
        request.password = "x"
        let refused = await wireError { [request] in try await bench.client.call(request) }
        #expect(refused?.reason == "WEAK_PASSWORD")
        await bench.stop()
    }

    @Test func otherCallersCannotCallAdministratorMethods() async throws {
        let bench = try await WireBench()
        let session = try #require(try await bench.client.call(Auth.SignUp()).session)
        // Before the params are looked at.
        let methods = Auth.methods.filter { $0.access == .administrator }.map { $0.method }
        #expect(methods.count > 25 && methods.contains("auth.users.export"))
        for method in methods {
            let nobody = await wireError { try await bench.client.call(method: method) }
            #expect(nobody?.code == .unauthenticated || nobody?.code == .permissionDenied, "\(method)")
            let user = await wireError { try await bench.client.call(method: method, credential: session.idToken) }
            #expect(user?.code == .permissionDenied, "\(method)")
        }
        let administrator = try await bench.client.call(Auth.Users.List(), credential: administratorKey)
        #expect(administrator.users.map(\.uid) == [session.uid])
        await bench.stop()
    }

    @Test func anotherServiceVerifiesTokensWithTheKeysItFetches() async throws {
        let bench = try await WireBench()
        let link = bench.client
        var configuration = IdentityConfiguration()
        configuration.refetchMillisecondsMin = 0
        let authenticator = ServiceAuthenticator(configuration: configuration, administratorKeys: .none) {
            try await link.call(Auth.Keys()).keys
        }
        let before = try #require(try await bench.client.call(Auth.SignUp()).session)
        #expect(try await authenticator.authenticate(before.idToken).uid == before.uid)
        // Twice, so that the signing key is unknown to the verifier.
        for _ in 0..<2 { _ = try await bench.client.call(Auth.Keys.Rotate(), credential: administratorKey) }
        let after = try #require(try await bench.client.call(Auth.SignUp()).session)
        #expect(try await authenticator.authenticate(after.idToken).uid == after.uid)
        #expect(try await bench.client.call(Auth.Account.Get(), credential: after.idToken).uid == after.uid)
        #expect(try await authenticator.authenticate(before.idToken).uid == before.uid)
        await bench.stop()
    }

    @Test func slowMethodsDoNotBlockTheirConnection() async throws {
        let bench = try await AuthBench.open()
        let server = try await AuthServer.start(bench.service, RPCServerConfiguration(service: "auth", version: "0"))
        let client = RPCClient(RPCClientConfiguration(host: server.host, port: server.port))
        bench.hold(true)
        let signIn = Task {
            await wireError { try await client.call(Auth.SignIn(email: "nobody@example.com", password: "something")) }
        }
        try await eventually("one is hashed") { bench.counts.running == 1 }
        // These calls get their responses while the password is still being hashed.
        #expect(try await client.call(Auth.Keys()).keys.count == 2)
        #expect(try await client.call(Auth.SignUp()).isNewUser == true)
        #expect(bench.counts.running == 1)
        bench.hold(false)
        #expect(await signIn.value?.reason == "INVALID_LOGIN_CREDENTIALS")
        await client.close()
        await server.shutdown(grace: .seconds(10))
    }

    @Test func manySignInsAtOnceSucceedOrAreRefusedAndMemoryStaysBounded() async throws {
        let bench = try await WireBench { configuration in
            configuration.hashingThreads = 2
            configuration.limits.passwordQueueMax = 16
            configuration.limitsLoopback = false
            configuration.limits.failuresFree = 10_000
            configuration.limits.failuresFreePerAccount = 10_000
        }
        _ = try await bench.client.call(Auth.SignUp(email: "masuo@example.com", password: AuthBench.password))
        let outcomes = await withTaskGroup(of: RPCError?.self) { group in
            for _ in 0..<1000 {
                group.addTask {
                    await wireError {
                        try await bench.client.call(
                            Auth.SignIn(email: "masuo@example.com", password: AuthBench.password))
                    }
                }
            }
            return await group.reduce(into: [RPCError?]()) { $0.append($1) }
        }
        #expect(outcomes.count == 1000)
        #expect(outcomes.contains { $0 == nil })
        for case let error? in outcomes { #expect(error.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "\(error)") }
        await bench.stop()
    }

    @Test func closedStoreIsReportedAsUnavailable() async throws {
        let bench = try await AuthBench.open()
        let server = try await AuthServer.start(bench.service, RPCServerConfiguration(service: "auth", version: "0"))
        let client = RPCClient(RPCClientConfiguration(host: server.host, port: server.port))
        let session = try #require(try await client.call(Auth.SignUp()).session)
        bench.store.close()
        let refused = await wireError { try await client.call(Auth.Refresh(refreshToken: session.refreshToken)) }
        #expect(refused?.code == .unavailable, "clients keep their users signed in")
        #expect(refused?.isRetryable == true)
        #expect(try await client.call(Service.Health()).status == .stopping)
        await client.close()
        await server.shutdown(grace: .seconds(10))
    }

    @Test func refusalsOfTheStoreAreLoggedOnceASecond() async throws {
        let bench = try await WireBench()
        let session = try #require(try await bench.client.call(Auth.SignUp()).session)
        bench.store.close()
        let start = ContinuousClock.now
        for _ in 0..<50 {
            let refused = await wireError {
                try await bench.client.call(Auth.Refresh(refreshToken: session.refreshToken))
            }
            #expect(refused?.code == .unavailable)
        }
        let seconds = (ContinuousClock.now - start).components.seconds
        let lines = bench.log.lines.filter { $0.contains("the store refused") }
        #expect(!lines.isEmpty && lines.count <= seconds + 1, "\(lines.count) lines in \(seconds) s")
        await bench.stop()
    }

    @Test func logNeverHoldsSecrets() async throws {
        let bench = try await WireBench()
        let session = try #require(
            try await bench.client.call(Auth.SignUp(email: "masuo@example.com", password: AuthBench.password)).session)
        _ = await wireError {
            try await bench.client.call(Auth.SignIn(email: "masuo@example.com", password: "wrong-secret"))
        }
        _ = try await bench.client.call(Auth.Refresh(refreshToken: session.refreshToken))
        let second = try await bench.client.call(Auth.Refresh(refreshToken: session.refreshToken))
        // A token that leads to the newest one over too many steps: a reuse, which is logged.
        var newest = second
        for _ in 0..<8 { newest = try await bench.client.call(Auth.Refresh(refreshToken: newest.refreshToken)) }
        _ = await wireError { try await bench.client.call(Auth.Refresh(refreshToken: session.refreshToken)) }
        _ = await wireError { try await bench.client.call(Auth.Account.Get(), credential: session.idToken + "x") }
        _ = try await bench.client.call(Auth.Keys.Rotate(), credential: administratorKey)
        let text = bench.log.lines.joined(separator: "\n")
        #expect(text.contains("used refresh token"))
        for secret in [
            AuthBench.password, "wrong-secret", session.refreshToken, second.refreshToken, session.idToken,
            administratorKey,
            "masuo@example.com",
        ] {
            #expect(!text.contains(secret))
        }
        await bench.stop()
    }
}

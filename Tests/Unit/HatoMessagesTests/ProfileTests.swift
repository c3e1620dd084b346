import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoMessages

/// Name and photo of each account in the tree.
@Suite(.timeLimit(.minutes(5)))
struct ProfileTests {
    /// A messages service with profiles of the accounts of `auth`, at `/users/{uid}` unless said otherwise.
    private func run(
        _ auth: FakeAuth, on store: any Store, at place: String = "default:/users/{uid}",
        _ body: (RunningMessages) async throws -> Void
    ) async throws {
        let configuration = auth.configuration
        let authenticator = ServiceAuthenticator(
            configuration: IdentityConfiguration(), administratorKeys: .none, fetchKeys: { [] })
        let profiles = try ProfilePlace(place)
        try await RunningMessages.with(
            store: store,
            change: {
                $0.auth = AuthLink(configuration: configuration, authenticator: authenticator, profiles: profiles)
            }, body)
    }

    private func tree(_ running: RunningMessages, _ path: TreePath = "/users") async throws -> JSONValue {
        let client = running.administrator
        defer { Task { await client.close() } }
        return try await client.call(Messages.Get(path: path)).value
    }

    private func until(_ running: RunningMessages, _ expected: JSONValue, _ path: TreePath = "/users") async throws {
        try await eventually("the profiles are \(expected)") { try await tree(running, path) == expected }
    }

    @Test func onlyPhotosThatAPageMayShowArePublished() {
        for shown in ["https://example.com/0.png", "HTTPS://example.com/写真.png?a=1&b=%22"] {
            #expect(ProfileEffects.isShown(shown), "\(shown)")
        }
        for hidden in [
            "http://example.com/0.png", "javascript:alert(1)", "data:text/html,a", "https://", "",
            "https://example.com/\"onerror=alert(1)", "https://example.com/'onerror=alert(1)",
            "https://example.com/<script>", "https://example.com/>", "https://example.com/`",
            "https://example.com/ a", "https://example.com/\u{7F}", " https://example.com/0.png",
        ] { #expect(!ProfileEffects.isShown(hidden), "\(hidden)") }
    }

    @Test func profilesOfAllAccountsAreThereAndFollowTheirChanges() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        for number in 0..<5 { auth.set("u\(number)", name: "name \(number)") }
        auth.set("anonymous", name: nil)
        let filled: JSONValue = .object(
            JSONObject(uniqueMembers: (0..<5).map { .init("u\($0)", ["name": .string("name \($0)")]) }))
        try await run(auth, on: store) { running in
            try await until(running, filled)
            try await auth.write(FakeEvent(.updated, "u0", name: "新しい名前", photo: "https://example.com/0.png"))
            for number in 2..<5 { try await auth.write(FakeEvent(.deleted, "u\(number)")) }
            // What others must not load, or cannot show, is left out.
            try await auth.write(FakeEvent(.created, "u9", name: "九", photo: "javascript:alert(1)"))
            try await until(
                running,
                [
                    "u0": ["name": "新しい名前", "photo": "https://example.com/0.png"], "u1": ["name": "name 1"],
                    "u9": ["name": "九"],
                ])
            try await auth.write(FakeEvent(.updated, "u0", name: "新しい名前"))
            try await until(
                running, ["u0": ["name": "新しい名前"], "u1": ["name": "name 1"], "u9": ["name": "九"]])
        }
        await auth.stop()
    }

    /// Each change is one commit, also when it comes again, and other children stay.
    @Test func changesAreNotWrittenTwice() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        auth.set("u", name: "一")
        try await run(auth, on: store) { running in
            try await until(running, ["u": ["name": "一"]])
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/users/u/chats/c", value: true))
            var changes = EventReader(try await client.subscribe(Messages.Listen(path: "/users/u/name")))
            #expect(try await changes.next() == [.put("/", "一")])
            for name in ["一", "二", "二", "三"] { try await auth.write(FakeEvent(.updated, "u", name: name)) }
            try await auth.write(FakeEvent(.deleted, "u"))
            var seen: [SeenEvent] = []
            while seen.last != .put("/", .null) { seen += try await changes.next() }
            #expect(seen == [.put("/", "二"), .put("/", "三"), .put("/", .null)])
            #expect(try await tree(running) == ["u": ["chats": ["c": true]]])
            await client.close()
        }
        await auth.stop()
    }

    /// Messages is down while accounts change: it goes on where it was, without reading all accounts.
    @Test func whatHappenedWhileItWasDownIsCaughtUp() async throws {
        let auth = try await FakeAuth.start()
        let kept = KeptStore(try MemoryStore())
        auth.set("u", name: "一")
        try await run(auth, on: kept) { try await until($0, ["u": ["name": "一"]]) }
        let lists = auth.listCount
        try await auth.write(FakeEvent(.updated, "u", name: "二"))
        try await auth.write(FakeEvent(.created, "v", name: "三"))
        try await run(auth, on: kept) { try await until($0, ["u": ["name": "二"], "v": ["name": "三"]]) }
        #expect(auth.listCount == lists)
        // Events that are no longer kept: what has become of all accounts is read.
        for _ in 0..<2 { try await auth.write(FakeEvent(.deleted, "u")) }
        try auth.store.compactCommits(through: auth.store.version)
        auth.remove("u")
        auth.set("v", name: "四")
        auth.set("w", name: "五")
        try await run(auth, on: kept) { try await until($0, ["v": ["name": "四"], "w": ["name": "五"]]) }
        #expect(auth.listCount > lists)
        // Another place is filled from all accounts.
        try await run(auth, on: kept, at: "default:/people/{uid}/card") { running in
            try await until(running, ["v": ["card": ["name": "四"]], "w": ["card": ["name": "五"]]], "/people")
        }
        await auth.stop()
    }

    @Test func missingDatabaseIsSaidAndFilledOnceItIsThere() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        auth.set("u", name: "一")
        try await run(auth, on: store, at: "people:/{uid}") { running in
            let client = running.administrator
            try await eventually("health says it") {
                let health = try await client.call(Service.Health())
                return health.status == .degraded
                    && health.checks?["profiles"]?.string?.contains("no database \"people\"") == true
            }
            let people = try #require(DatabaseName(rawValue: "people"))
            _ = try await client.call(Messages.Databases.Create(database: people))
            try await eventually("the profile") {
                try await client.call(Messages.Get(database: people, path: "/")).value == ["u": ["name": "一"]]
            }
            try await eventually("health is ready") {
                try await client.call(Service.Health()).checks?["profiles"] == "following"
            }
            await client.close()
        }
        await auth.stop()
    }

    @Test(arguments: [
        ("/users/{uid}", "has no colon"), ("a b:/users/{uid}", "no name of a database"),
        ("default:users", "no path"), ("default:/users", "{uid}"), ("default:/{uid}/{uid}", "{uid}"),
        ("default:/{user}", "{uid}"), ("default:/users/$x", "no path"),
    ])
    func wrongPlaceIsRefusedWithWhatIsRight(_ text: String, problem: String) {
        let error = #expect(throws: ArgumentError.self) { try ProfilePlace(text) }
        #expect(error?.message.contains(problem) == true && error?.message.contains("default:/users/{uid}") == true)
    }
}

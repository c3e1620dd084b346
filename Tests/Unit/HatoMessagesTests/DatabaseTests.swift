import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import TestStores
import Testing

@testable import HatoMessages

@Suite struct DatabaseTests {
    @Test func newDatabaseDeniesEverythingToUsers() async throws {
        try await RunningMessages.with { running in
            let (administrator, client) = (running.administrator, running.user("a"))
            let name = try DatabaseName("other")
            let missing = await refusal { try await client.call(Messages.Get(database: name, path: "/")) }
            #expect(missing?.reason == "database_not_found")
            _ = try await administrator.call(Messages.Databases.Create(database: name))
            let read = await refusal { try await client.call(Messages.Get(database: name, path: "/")) }
            #expect(read?.code == .permissionDenied)
            let write = await refusal { try await client.call(Messages.Set(database: name, path: "/a", value: 1)) }
            #expect(write?.code == .permissionDenied)
            let again = await refusal { try await administrator.call(Messages.Databases.Create(database: name)) }
            #expect(again?.code == .alreadyExists)
            let names = try await administrator.call(Messages.Databases.List()).databases.map(\.name.rawValue)
            #expect(names == ["default", "other"])
        }
    }

    @Test func databasesAreApart() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let name = try DatabaseName("other")
            _ = try await client.call(Messages.Databases.Create(database: name))
            _ = try await client.call(Messages.Set(path: "/a", value: 1))
            _ = try await client.call(Messages.Set(database: name, path: "/a", value: 2))
            let values = [
                try await client.call(Messages.Get(path: "/a")).value,
                try await client.call(Messages.Get(database: name, path: "/a")).value,
            ]
            #expect(values == [1, 2])
        }
    }

    @Test func droppedDatabaseIsGoneAndItsNameIsFree() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let name = try DatabaseName("other")
            _ = try await client.call(Messages.Databases.Create(database: name))
            _ = try await client.call(Messages.Set(database: name, path: "/a", value: 1))
            var events = EventReader(try await client.subscribe(Messages.Listen(database: name, path: "/a")))
            _ = try await events.next()
            _ = try await client.call(Messages.Databases.Drop(database: name))
            let last = try await events.nextNotification()
            #expect(last?.method == Messages.Cancelled.method)
            #expect(last?.params["reason"] == "database_dropped")
            #expect(
                await refusal { try await client.call(Messages.Get(database: name, path: "/a")) }?.code == .notFound)
            _ = try await client.call(Messages.Databases.Create(database: name))
            let value = try await client.call(Messages.Get(database: name, path: "/")).value
            #expect(value == .null)
        }
    }

    /// Versions go on counting: what one database was at a version says nothing of the next of its name.
    @Test func newDatabaseOfADroppedNameIsUnknownToListeners() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let name = try DatabaseName("other")
            _ = try await client.call(Messages.Databases.Create(database: name))
            _ = try await client.call(Messages.Set(database: name, path: "/r", value: ["old": 1]))
            let subscription = try await client.subscribe(Messages.Listen(database: name, path: "/r"))
            let epoch = subscription.result["epoch"]?.string ?? ""
            let known = UInt64(subscription.result["version"]?.number ?? 0)
            _ = try await client.call(Messages.Databases.Drop(database: name))
            _ = try await client.call(Messages.Databases.Create(database: name))
            _ = try await client.call(Messages.Set(database: name, path: "/r", value: ["new": 1]))

            var request = Messages.Listen(database: name, path: "/r")
            request.since = known
            request.epoch = epoch
            var events = EventReader(try await client.subscribe(request))
            #expect(try await events.next() == [.put("/", ["new": 1])])
            let follow = Messages.Follow(database: name, after: known, epoch: epoch)
            let refused = await refusal { try await client.subscribe(follow) }
            #expect(refused?.reason == "compacted")
            // A follower that resumes right before the oldest kept change is accepted, and misses none.
            let oldest = UInt64(refused?.data["oldest"]?.number ?? 0)
            let again = Messages.Follow(database: name, after: oldest - 1, epoch: epoch)
            var feed = FeedReader(try await client.subscribe(again))
            #expect(try await feed.next().changes.first?.path == "/r")
            var set = Messages.Set(database: name, path: "/r/old", value: 2)
            set.ifVersion = known
            #expect(await refusal { try await client.call(set) }?.reason == "version_mismatch")
        }
    }

    /// As versions before 2 of the record's format wrote it.
    @Test func recordWithoutItsFirstVersionIsRead() throws {
        let record = DatabaseRecord(id: DatabaseID(rawValue: 7), createdAt: 5, firstVersion: 9, rules: "{}")
        #expect(try DatabaseRecord(record.encoded) == record)
        var old = record.encoded
        old[0] = 1
        old.removeSubrange(13..<21)
        #expect(try DatabaseRecord(old).firstVersion == 0)
        #expect(try DatabaseRecord(old).rules == "{}")
    }

    @Test func databasesRulesAndIndexesSurviveTheService() async throws {
        let store = KeptStore(try MemoryStore())
        try await RunningMessages.with(store: store) { running in
            let client = running.administrator
            _ = try await client.call(Messages.Databases.Create(database: DatabaseName("other")))
            _ = try await client.call(Messages.Rules.Set(rules: Self.indexed(on: "age")))
            try await Self.waitForIndexes(client)
        }
        try await RunningMessages.with(store: store) { running in
            let client = running.administrator
            let names = try await client.call(Messages.Databases.List()).databases.map(\.name.rawValue)
            #expect(names == ["default", "other"])
            let rules = try await client.call(Messages.Rules.Get()).rules
            #expect(rules == Self.indexed(on: "age"))
            let indexes = try await client.call(Messages.Indexes.List())
            #expect(indexes.map(\.on) == ["age"])
            #expect(indexes.map(\.state) == [.ready])
        }
    }

    // MARK: Rules

    @Test func wrongRulesAreRefusedWithLineAndColumn() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let before = try await client.call(Messages.Rules.Get()).rules
            let wrong = "{\n  \"rules\": {\n    \".read\": \"tru\"\n  }\n}"
            let refused = await refusal { try await client.call(Messages.Rules.Set(rules: wrong)) }
            #expect(refused?.code == .invalidArgument)
            let problem = refused?.data["problems"]?.array?.first
            #expect(problem?["line"] == 3)
            #expect(problem?["column"]?.number ?? 0 > 1)
            #expect(problem?["message"]?.string?.isEmpty == false)
            let after = try await client.call(Messages.Rules.Get()).rules
            #expect(after == before)
        }
    }

    @Test func dryRunChangesNothing() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let version = running.store.version
            let result = try await client.call(Messages.Rules.Set(rules: DefaultRules.deny, dryRun: true))
            #expect(result.version == version)
            let rules = try await client.call(Messages.Rules.Get()).rules
            #expect(rules == DefaultRules.signedIn)
        }
    }

    /// What is refused today may be stored since an older version: its database opens.
    @Test func databaseOpensWithRulesThatAreRefusedToday() async throws {
        let rules = #"{"rules": {"$a": {"$a": {".read": "$a == 'x'"}}}}"#
        try await RunningMessages.with { running in
            let refused = await refusal { try await running.administrator.call(Messages.Rules.Set(rules: rules)) }
            #expect(refused?.reason == "invalid_rules")
            #expect(refused?.message.contains("1:19: The wildcard '$a' is declared above already") == true)
        }
        let record = DatabaseRecord(id: DatabaseID(rawValue: 1), createdAt: 0, firstVersion: 1, rules: rules)
        let (store, limits) = (try MemoryStore(), MessagesLimits())
        defer { store.close() }
        let database = try Database(
            name: .default, record: record, reading: store.snapshot(), RulesMeter(limits, MessagesMetrics()))
        let situation = RulesContext(auth: .nobody, now: 0, before: TreeNode.empty)
        #expect(try database.rules.authoriseRead(TreePath("/y/x"), situation).isAllowed)
        #expect(try !database.rules.authoriseRead(TreePath("/x/y"), situation).isAllowed)
    }

    @Test func writeIsAuthorisedByTheRulesBeforeIt() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"admin"}}"#)
            let set = #"{"jsonrpc":"2.0","id":2,"method":"messages.rules.set","params":{"rules":"{\"rules\":{}}"}}"#
            try await line.send(set)
            try await line.send(
                #"{"jsonrpc":"2.0","id":3,"method":"messages.set","params":{"auth":"user:a","path":"/a","value":1}}"#)
            _ = try await line.next()
            #expect(try await line.next()["result"] != nil)
            #expect(try await line.next()["error"]?["code"] == -32002)
            line.close()
        }
    }

    // MARK: Indexes

    @Test func queryWithoutAnIndexSaysWhatToAdd() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let query = TreeQuery(order: .child("/age"), limit: .last(1))
            let refused = await refusal { try await client.call(Messages.Get(path: "/people", query: query)) }
            #expect(refused?.reason == "index_not_defined")
            #expect(refused?.message.contains(#"".indexOn": "age""#) == true)
        }
    }

    @Test func indexIsBuiltForExistingDataWhileWritesGoOn() async throws {
        try await RunningMessages.with(change: { $0.limits.indexBuildPageRows = 7 }) { running in
            let client = running.administrator
            var people = JSONObject()
            for number in 0..<100 {
                people["p\(number)"] = ["age": .number(Double(number % 10)), "n": .number(Double(number))]
            }
            _ = try await client.call(Messages.Set(path: "/people", value: .object(people)))
            _ = try await client.call(Messages.Rules.Set(rules: Self.indexed(on: "age")))
            for number in 0..<20 {
                _ = try await client.call(
                    Messages.Set(path: TreePath("/people/p\(number)/age"), value: .number(Double(100 + number))))
            }
            try await Self.waitForIndexes(client)
            let query = TreeQuery(order: .child("/age"), limit: .last(3))
            let result = try await client.call(Messages.Get(path: "/people", query: query))
            #expect(result.keys == ["p17", "p18", "p19"])
            let index = try #require(try await client.call(Messages.Indexes.List()).first)
            #expect(index.entries == 100)
            #expect(index.pattern == "/people")
        }
    }

    @Test func indexThatRulesNoLongerDeclareIsDropped() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Rules.Set(rules: Self.indexed(on: "age")))
            _ = try await client.call(Messages.Set(path: "/people/a", value: ["age": 1]))
            try await Self.waitForIndexes(client)
            _ = try await client.call(Messages.Rules.Set(rules: Self.indexed(on: "name")))
            let query = TreeQuery(order: .child("/age"))
            let refused = await refusal { try await client.call(Messages.Get(path: "/people", query: query)) }
            #expect(refused?.reason == "index_not_defined")
            try await Self.waitForIndexes(client)
            let indexes = try await client.call(Messages.Indexes.List())
            #expect(indexes.map(\.on) == ["name"])
            #expect(indexes.map(\.entries) == [1])
        }
    }

    @Test func resultOfAQueryStandsInItsOrder() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            for (key, date) in [("30", 1), ("4", 3), ("x", 2)] {
                _ = try await client.call(
                    Messages.Set(path: TreePath("/chats/c/messages/\(key)"), value: ["date": .number(Double(date))]))
            }
            let line = try await RawLines.connect(running)
            try await line.send(
                #"{"jsonrpc":"2.0","id":1,"method":"messages.get","params":{"auth":"user:a","path":"/chats/c/messages","query":{"orderBy":"date"}}}"#
            )
            let result = try await line.next()["result"]
            #expect(result?["value"]?.object?.members.map(\.name) == ["30", "x", "4"])
            #expect(result?["keys"] == ["30", "x", "4"])
            let nothing = try await client.call(
                Messages.Get(path: "/chats/none/messages", query: TreeQuery(order: .child("/date"))))
            #expect(nothing.value == [:])
            #expect(nothing.keys == [])
            line.close()
        }
    }

    static func indexed(on name: String) -> String {
        #"{"rules": {"people": {".indexOn": "\#(name)"}}}"#
    }

    static func waitForIndexes(_ client: RPCClient) async throws {
        try await eventually("the index is ready") {
            try await client.call(Messages.Indexes.List()).allSatisfy { $0.state != .building }
        }
    }
}

/// A store that stays open when a service that used it stops.
final class KeptStore: WrappedStore {
    let store: any Store
    private let beforeBackup: @Sendable () -> Void
    private let records = Atomic(0)
    /// Whether what is read for topics waits until there are two newer groups.
    let topicsAreSlow = Atomic(false)
    private let slowReads = Mutex<[(version: UInt64, body: @Sendable () -> Void)]>([])

    init(_ store: any Store, beforeBackup: @escaping @Sendable () -> Void = {}) {
        self.store = store
        self.beforeBackup = beforeBackup
    }

    /// The records of commits that were read.
    var recordsRead: Int { records.load(ordering: .relaxed) }
    func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void) {
        guard topicsAreSlow.load(ordering: .relaxed), client?.hasPrefix(TopicNotifier.readerNamePrefix) == true else {
            return store.submitRead(of: client, isLong: isLong, body)
        }
        slowReads.withLock { $0.append((store.version, body)) }
    }
    func observeCommits(
        _ observer: @escaping @Sendable (CommitGroup) -> Void, ended: @escaping @Sendable (StoreError) -> Void
    ) -> CommitObservation {
        let observation = store.observeCommits(
            { [self] group in
                observer(group)
                for body in takeSlowReads(before: group.snapshot.version) { store.submitRead(of: nil, body) }
            }, ended: ended)
        return observation
    }

    private func takeSlowReads(before version: UInt64) -> [@Sendable () -> Void] {
        slowReads.withLock { reads in
            defer { reads.removeAll { $0.version + 1 < version } }
            return reads.filter { $0.version + 1 < version }.map(\.body)
        }
    }

    func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit] {
        let commits = try store.commits(after: version, limit: limit)
        records.add(commits.count, ordering: .relaxed)
        return commits
    }
    func backup(to folder: String) throws(StoreError) -> UInt64 {
        beforeBackup()
        return try store.backup(to: folder)
    }
    func close() {}
}

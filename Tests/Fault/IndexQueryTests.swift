import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Indexes are always right. Random queries run before, during and after index builds that are also killed between
/// their pages, while writes go on. Each gets the result of a scan of the whole room at the version of its response.
@Suite("Indexes while they are built", .timeLimit(.minutes(60)))
struct IndexQueryTests {
    static let few = """
        {"rules": {"c": {"$room": {".indexOn": "kept"}}}}
        """
    static let all = """
        {"rules": {"c": {"$room": {".indexOn": ["date", "author/name", ".value", "kept"]}}}}
        """
    private static let places = ["index.beforePage", "index.inPage", "index.afterPage", "commit.beforeSync"]

    @Test func everyQueryEqualsAScanOfItsCollection() async throws {
        let (queries, seed) = (FaultSettings.queries, UInt64(FaultSettings.seed))
        print("index test: HATO_FAULT_SEED=\(seed) HATO_FAULT_QUERIES=\(queries)")
        try await LoneMessages.run(["--index-build-page-rows", "5"]) { messages in
            let history = QueryHistory()
            func traffic(_ part: Int) -> RoomTraffic {
                RoomTraffic(history: history, client: { messages.client() }, seed: seed &+ UInt64(part) &* 100)
            }
            try await messages.start()
            try await setRules(messages, Self.few)
            try await traffic(0).fill()
            let start = ContinuousClock.now
            // Before, during, after.
            #expect(try await traffic(1).run(queries: queries / 4) == .isOver)
            #expect(history.refusedQueries > 0, "queries without an index")
            #expect(history.queries.contains { $0.keys != nil }, "queries by an index")
            try await stopInTheMiddle(messages)
            try await messages.start()
            try await untilBuilt(messages, traffic(2), queries: queries / 8)
            let refused = history.refusedQueries
            #expect(try await traffic(3).run(queries: queries / 4) == .isOver)
            #expect(history.refusedQueries == refused, "every query has an index")
            var random = SeededRandom(seed: seed)
            let kills = Self.places.shuffled(using: &random).prefix(max(2, FaultSettings.kills))
            for (number, failpoint) in kills.enumerated() {
                try await killBuild(messages, failpoint, traffic(4 + number), seed: seed &+ UInt64(number))
                try await untilBuilt(messages, traffic(10 + number), queries: queries / 10)
            }
            let seconds = Double((ContinuousClock.now - start).components.seconds)
            print("builds killed at \(kills.joined(separator: ", "))")
            try await check(messages, history, seconds)
        }
    }

    private func setRules(_ messages: LoneMessages, _ rules: String) async throws {
        let client = messages.client()
        _ = try await client.call(method: "messages.rules.set", params: ["rules": .string(rules)])
        await client.close()
    }

    private func untilBuilt(_ messages: LoneMessages, _ traffic: RoomTraffic, queries: Int) async throws {
        let client = messages.client()
        let end = try await traffic.run(queries: queries) { try await traffic.areIndexesBuilt(client) }
        #expect(end == .isOver)
        await client.close()
    }

    /// Begins to build all indexes on a disk that fails at the thirtieth page: the build stops there and reports its
    /// progress.
    private func stopInTheMiddle(_ messages: LoneMessages) async throws {
        await messages.program.stop()
        try await messages.start(failpoints: "index.beforePage=error@30")
        try await setRules(messages, Self.all)
        let client = messages.client()
        try await eventually("a build shows how far it is", within: FaultSettings.patience) {
            try await client.call(Messages.Indexes.List()).contains { index in
                index.state == .building && index.progress > 0 && index.progress < 1
            }
        }
        await client.close()
        await messages.program.stop()
    }

    /// Begins to build all indexes again and is killed during it; then the service is started again.
    private func killBuild(
        _ messages: LoneMessages, _ failpoint: String, _ traffic: RoomTraffic, seed: UInt64
    ) async throws {
        var random = SeededRandom(seed: seed)
        try await setRules(messages, Self.few)
        await messages.program.stop()
        try await messages.start(failpoints: "\(failpoint)=kill@\(Int.random(in: 30...150, using: &random))")
        try await setRules(messages, Self.all)
        #expect(try await traffic.run(queries: .max / 2) == .serviceIsGone, "\(failpoint)")
        #expect(await messages.program.diedAtFailpoint(), "\(failpoint)")
        let (code, result) = try await messages.verify()
        #expect(code == 0, "\(failpoint): \(result.encodedText)")
        try await messages.start()
    }

    // MARK: The check

    private func check(_ messages: LoneMessages, _ history: QueryHistory, _ seconds: Double) async throws {
        let client = messages.client()
        let mark = try await client.call(
            method: "messages.update", params: ["path": "/", "values": ["mark/end": .number(0)]])["version"]?.number
        let feed = try await FailpointKillTests.feed(client, through: UInt64(mark ?? 0))
        let versions = Dictionary(uniqueKeysWithValues: feed.map { ($0.version, $0) })
        for (id, version) in history.answeredWrites {
            let place = RandomLoad.path("mark", "w\(id % 16)")
            #expect(versions[version]?.changes[place] == .number(Double(id)), "write \(id) is at version \(version)")
        }
        var (node, next) = (TreeNode.empty, 0)
        let queries = history.queries.sorted { $0.version < $1.version }
        for query in queries {
            while next < feed.count, feed[next].version <= query.version {
                node = try Self.apply(feed[next], to: node)
                next += 1
            }
            let selected = query.query.select(from: node.node(at: query.path))
            if let keys = query.keys {
                try #require(keys == selected.map(\.key.text), "\(query.query.json) at version \(query.version)")
            }
            try #require(
                query.node == .object(unsorted: selected), "\(query.query.json) at version \(query.version)")
        }
        let byIndex = queries.count { $0.keys != nil }
        print(
            "\(queries.count) queries, \(byIndex) of them by an index; \(history.answeredWrites.count) writes acknowledged, "
                + "\(Int(Double(history.answeredWrites.count) / max(1, seconds)))/s meanwhile; "
                + "wrong answers: 0")
        await client.close()
        await messages.program.stop()
        let (code, result) = try await messages.verify()
        #expect(code == 0, "\(result.encodedText)")
    }

    /// The order of changes of one commit does not matter.
    private static func apply(_ commit: SeenCommit, to node: TreeNode) throws -> TreeNode {
        var node = node
        for (path, value) in commit.changes { node = node.setting(try TreeNode(json: value), at: path) }
        return node
    }
}

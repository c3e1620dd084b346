import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `hato-messages` is killed at each guarantee of a commit while many clients work, and restarted. Acknowledged and
/// visible writes are in the store once and whole, and the whole history is linearizable (`HistoryCheck`).
@Suite("Messages killed at a failpoint", .serialized, .timeLimit(.minutes(60)))
struct FailpointKillTests {
    /// The failpoints of a commit, and how often a run passes each at most before it is killed there.
    static let places: [(name: String, passingsMax: Int)] = [
        ("commit.beforeApply", 60), ("commit.afterApply", 60), ("commit.beforeSync", 40), ("commit.afterSync", 40),
        ("commit.beforePublish", 40), ("commit.afterPublish", 40), ("commit.beforeAnswer", 150),
        ("commit.afterAnswer", 150), ("events.beforeSend", 40), ("events.afterSend", 40),
        ("commit.beforeTake", 4), ("commit.afterTake", 4), ("log.afterZeros", 3),
    ]

    @Test func noAcknowledgedOrVisibleWriteIsLost() async throws {
        let seed = UInt64(FaultSettings.seed)
        print("failpoint test: HATO_FAULT_SEED=\(seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        var random = SeededRandom(seed: seed)
        try await LoneMessages.run { messages in
            let history = RecordedHistory()
            let witness = Witness(history)
            // The first commit makes the database: no load runs during it.
            try await messages.start()
            await messages.program.kill()
            var kills = 0
            for round in 0..<FaultSettings.kills {
                for (name, passingsMax) in Self.places.shuffled(using: &random) {
                    let count = Int.random(in: 1...passingsMax, using: &random)
                    try await messages.start(failpoints: "\(name)=kill@\(count)")
                    let watching = try await witness.attend(messages.client())
                    try await RandomLoad(history: history, seed: random.next()).run { messages.client() }
                    try #require(await messages.program.diedAtFailpoint(), "\(name) in round \(round)")
                    try await watching.value
                    kills += 1
                    if kills % 3 == 0 { try await dieInRecovery(messages, &kills) }
                    let (code, result) = try await Self.verify(messages, after: name)
                    #expect(code == 0, "\(name): \(result.encodedText)")
                }
            }
            try await messages.start()
            let summary = try await Self.check("failpoints", messages, history, witness)
            print("\(kills) kills; \(summary.text)")
        }
    }

    /// A service killed near a large write may leave it to the next start to ingest its rows.
    static func verify(_ messages: LoneMessages, after name: String = "") async throws -> (Int32, JSONValue) {
        let first = try await messages.program.run(["verify", "--data", messages.data, "--json"])
        if name.hasSuffix("Take") {
            #expect(first.log.contains("rows of a commit wait"), "\(name): \(first.code) \(first.log)")
        }
        if first.log.contains("rows of a commit wait") || first.log.contains("the end of the log is torn") {
            #expect(first.code == 74)
            try await messages.start()
            await messages.program.stop()
        }
        return try await messages.verify()
    }

    /// Killed again during recovery.
    private func dieInRecovery(_ messages: LoneMessages, _ kills: inout Int) async throws {
        await #expect(throws: DeadlineExceeded.self) { try await messages.start(failpoints: "open.afterRecovery=kill") }
        #expect(await messages.program.diedAtFailpoint())
        kills += 1
    }

    /// Of a service that was started again.
    static func check(
        _ name: String, _ messages: LoneMessages, _ history: RecordedHistory, _ witness: Witness
    ) async throws -> HistoryCheck.Summary {
        let client = messages.client()
        let watching = try await witness.attend(messages.client())
        let last = try await RandomLoad(history: history, seed: 0).pushOnce(client)
        let feed = try await feed(client, through: last)
        try await witness.hasSeen(last)
        let summary = try HistoryCheck(name, history, feed: feed).run()
        // The tree is the result of the feed.
        let replay = Replay(feed)
        for path in Set(feed.flatMap(\.changes.keys)) {
            let found = try await client.call(method: "messages.get", params: ["path": .string(path.text)])
            #expect(found["value"] == replay.value(at: path, .max), "\(path)")
        }
        await client.close()
        await messages.program.stop()
        try await watching.value
        return summary
    }

    /// The whole feed up to a commit.
    static func feed(_ client: RPCClient, through last: UInt64) async throws -> [SeenCommit] {
        let events = try await client.subscribe(method: "messages.follow", params: ["after": 0])
        defer { withExtendedLifetime(events) {} }
        var feed: [SeenCommit] = []
        for try await event in events {
            guard let commit = try Witness.commit(event) else { continue }
            feed.append(commit)
            if commit.version >= last { break }
        }
        events.cancel()
        return feed
    }
}

extension JSONValue {
    var encodedText: String { String(decoding: encoded, as: UTF8.self) }
}

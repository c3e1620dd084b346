import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(5))) struct TopicTests {
    private func reason(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch {
            let error = error as? RPCError
            if error?.code == .permissionDenied { return "denied" }
            return error?.code == .invalidParams ? "params" : error?.reason
        }
    }

    @Test func topicsAreSubscribedListedAndUnsubscribed() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        for topic in ["news", "alerts", "news"] {
            _ = try await notifier.call(Notifier.Topics.Subscribe(topic: topic), as: "u1")
        }
        _ = try await notifier.client.call(Notifier.Topics.Subscribe(topic: "news", uid: "u2"))
        let own = try await notifier.call(Notifier.Topics.List(), as: "u1")
        #expect(own.topics == [.init(topic: "alerts"), .init(topic: "news")] && own.uids == nil && own.after == nil)
        let all = try await notifier.client.call(Notifier.Topics.List())
        #expect(all.topics == [.init(topic: "alerts", users: 1), .init(topic: "news", users: 2)])
        let users = try await notifier.client.call(Notifier.Topics.List(topic: "news"))
        #expect(users.topics == [.init(topic: "news", users: 2)] && users.uids == ["u1", "u2"])
        for _ in 0..<2 { _ = try await notifier.call(Notifier.Topics.Unsubscribe(topic: "news"), as: "u1") }
        _ = try await notifier.client.call(Notifier.Topics.Unsubscribe(topic: "alerts", uid: "u1"))
        #expect(try await notifier.client.call(Notifier.Topics.List()).topics == [.init(topic: "news", users: 1)])
        #expect(try await notifier.client.call(Notifier.Topics.List(uid: "u1")).topics.isEmpty)
        #expect(try notifier.store.snapshot().rows(RecordKey(.topic)).count == 3)
        await notifier.stop()
    }

    @Test func listsHavePages() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        for number in 1...5 {
            _ = try await notifier.client.call(Notifier.Topics.Subscribe(topic: "t\(number)", uid: "u1"))
            _ = try await notifier.client.call(Notifier.Topics.Subscribe(topic: "t1", uid: "u\(number)"))
        }
        func pages(_ request: Notifier.Topics.List) async throws -> [[String]] {
            var (request, pages): (Notifier.Topics.List, [[String]]) = (request, [])
            request.limit = 2
            repeat {
                let page = try await notifier.client.call(request)
                pages.append(page.uids ?? page.topics.map(\.topic))
                request.after = page.after
            } while request.after != nil
            return pages
        }
        #expect(try await pages(.init()) == [["t1", "t2"], ["t3", "t4"], ["t5"]])
        #expect(try await pages(.init(uid: "u1")) == [["t1", "t2"], ["t3", "t4"], ["t5"]])
        #expect(try await pages(.init(topic: "t1")) == [["u1", "u2"], ["u3", "u4"], ["u5"]])
        await notifier.stop()
    }

    @Test func wrongRequestsAreRefusedByName() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()]) { $0.limits.topicsPerUserMax = 2 }
        func subscribe(_ topic: String, uid: String? = nil) async throws {
            _ = try await notifier.call(Notifier.Topics.Subscribe(topic: topic, uid: uid), as: "u1")
        }
        #expect(await reason { try await subscribe("") } == "invalid_key")
        #expect(await reason { try await subscribe(String(repeating: "x", count: 257)) } == "invalid_key")
        #expect(await reason { try await subscribe("a", uid: "u2") } == "denied")
        for topic in ["a", "b", "a"] { try await subscribe(topic) }
        #expect(await reason { try await subscribe("c") } == "too_many_topics")
        #expect(
            await reason { _ = try await notifier.client.call(Notifier.Topics.Subscribe(topic: "a")) }
                == "params")
        #expect(
            await reason { _ = try await notifier.call(Notifier.Topics.List(topic: "a"), as: "u1") }
                == "denied")
        let both = Notifier.Topics.List(topic: "a", uid: "u1")
        #expect(await reason { _ = try await notifier.client.call(both) } == "params")
        let page = Notifier.Topics.List(after: "\u{1}")
        #expect(await reason { _ = try await notifier.client.call(page) } == "invalid_page")
        await notifier.stop()
    }

    @Test func topicsGoWithTheirUsers() async throws {
        let store = try MemoryStore()
        _ = try await store.write { transaction in
            var changes = TopicChanges()
            _ = try changes.subscribe("a", to: "x", topicsMax: 9, in: transaction)
            _ = try changes.subscribe("b", to: "y", topicsMax: 9, in: transaction)
            try changes.writes.apply(to: transaction)
        }
        for (uid, topic) in [("b", "x"), ("c", "x"), ("c", "z")] {
            _ = try await store.write { transaction in
                var changes = TopicChanges()
                _ = try changes.subscribe(uid, to: topic, topicsMax: 9, in: transaction)
                try changes.writes.apply(to: transaction)
            }
        }
        _ = try await store.write { transaction in
            var changes = TopicChanges()
            // Together: a count is read once.
            try changes.removeAll(of: ["a", "b"], in: transaction)
            try changes.writes.apply(to: transaction)
        }
        let reading = TopicReading(try store.snapshot())
        #expect(
            try reading.topics(after: nil, limit: 9) == [.init(topic: "x", users: 1), .init(topic: "z", users: 1)])
        #expect(try reading.users(of: "x", after: nil, limit: 9) == ["c"])
        #expect(try store.snapshot().rows(TopicRecord.usersPrefix).count == 2)
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct ListeningTests {
    @Test func firstEventIsTheWholeValueAndLaterOnesAreChanges() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            _ = try await client.call(Messages.Set(path: "/a", value: ["x": 1]))
            let subscription = try await client.subscribe(Messages.Listen(path: "/a"))
            var events = EventReader(subscription)
            #expect(try await events.next() == [.put("/", ["x": 1])])
            _ = try await client.call(Messages.Set(path: "/a/y", value: 2))
            #expect(try await events.next() == [.put("/y", 2)])
            _ = try await client.call(Messages.Update(path: "/a", values: ["x": nil, "z/deep": true]))
            #expect(try await events.next() == [.patch("/", ["x": nil, "z/deep": true])])
            _ = try await client.call(Messages.Remove(path: "/a"))
            #expect(try await events.next() == [.put("/", nil)])
            _ = try await client.call(Messages.Set(path: "/", value: ["a": "leaf"]))
            #expect(try await events.next() == [.put("/", "leaf")])
        }
    }

    @Test func nothingIsTheFirstEventOfAnEmptyPlace() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/nowhere")))
            #expect(try await events.next() == [.put("/", nil)])
        }
    }

    @Test func ownEventsComeBeforeTheOwnResponse() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"user:a"}}"#)
            try await line.send(#"{"jsonrpc":"2.0","id":2,"method":"messages.listen","params":{"path":"/a"}}"#)
            try await line.send(#"{"jsonrpc":"2.0","id":3,"method":"messages.set","params":{"path":"/a","value":7}}"#)
            try await line.send(#"{"jsonrpc":"2.0","id":4,"method":"messages.set","params":{"path":"/b","value":8}}"#)
            var order: [String] = []
            while order.last != "answer 4" {
                let message = try await line.next()
                if let id = message["id"]?.number { order.append("answer \(Int(id))") } else { order.append("event") }
            }
            // The first value may hold the first write already: then one event stands for both.
            let turns = order.indices.filter { $0 == 0 || order[$0] != order[$0 - 1] }.map { order[$0] }
            #expect(turns == ["answer 1", "answer 2", "event", "answer 3", "answer 4"])
            line.close()
        }
    }

    @Test func windowOfNewestMessagesMovesWithThem() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            for date in 1...3 {
                _ = try await client.call(
                    Messages.Set(path: TreePath("/chats/c/messages/m\(date)"), value: ["date": .number(Double(date))]))
            }
            let query = TreeQuery(order: .child("/date"), limit: .last(2))
            let subscription = try await client.subscribe(Messages.Listen(path: "/chats/c/messages", query: query))
            #expect(subscription.result["warning"] == nil)
            var events = EventReader(subscription)
            #expect(try await events.next() == [.put("/", ["m2": ["date": 2], "m3": ["date": 3]])])
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m4", value: ["date": 4]))
            #expect(try await events.next() == [.patch("/", ["m2": nil, "m4": ["date": 4]])])
            _ = try await client.call(Messages.Remove(path: "/chats/c/messages/m3"))
            #expect(try await events.next() == [.patch("/", ["m3": nil, "m2": ["date": 2]])])
        }
    }

    @Test func listenerWithoutAnIndexIsWarned() async throws {
        try await RunningMessages.with { running in
            let query = TreeQuery(order: .child("/age"), limit: .first(1))
            let client = running.user("a")
            _ = try await client.call(Messages.Set(path: "/x", value: ["p": ["age": 9], "q": ["age": 3]]))
            let subscription = try await client.subscribe(Messages.Listen(path: "/x", query: query))
            #expect(subscription.result["warning"] == "no_index")
            var events = EventReader(subscription)
            #expect(try await events.next() == [.put("/", ["q": ["age": 3]])])
            _ = try await client.call(Messages.Set(path: "/x/r", value: ["age": 1]))
            #expect(try await events.next() == [.patch("/", ["q": nil, "r": ["age": 1]])])
        }
    }

    @Test func defaultQueryIsTheNodeItself() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            _ = try await client.call(Messages.Set(path: "/n", value: 5))
            #expect(try await client.call(Messages.Get(path: "/n", query: TreeQuery())).value == 5)
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/n", query: TreeQuery())))
            #expect(try await events.next() == [.put("/", 5)])
            _ = try await client.call(Messages.Set(path: "/n", value: ["b": 1]))
            #expect(try await events.next() == [.put("/", ["b": 1])])
            let children = try await client.call(Messages.Get(path: "/n", query: TreeQuery()))
            #expect(children.value == ["b": 1] && children.keys == ["b"])
        }
    }

    @Test func orderOfPrioritiesAloneIsAQuery() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            let query = TreeQuery(order: .priority)
            _ = try await client.call(Messages.Set(path: "/n", value: [".value": 5, ".priority": 1]))
            let ofLeaf = try await client.call(Messages.Get(path: "/n", query: query))
            #expect(ofLeaf.value == [:] && ofLeaf.keys == [])
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/n", query: query)))
            #expect(try await events.next() == [.put("/", nil)])
            let node: JSONValue = [".priority": 1, "a": [".value": 1, ".priority": 2], "b": 2]
            _ = try await client.call(Messages.Set(path: "/n", value: node))
            #expect(try await events.next() == [.put("/", ["b": 2, "a": [".value": 1, ".priority": 2]])])
            let children = try await client.call(Messages.Get(path: "/n", query: query, form: .export))
            #expect(children.value["a"] == [".value": 1, ".priority": 2] && children.value[".priority"] == nil)
            #expect(children.keys == ["b", "a"])
        }
    }

    @Test func deeperListenersGetTheirEventsFirst() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"user:a"}}"#)
            var names: [String: String] = [:]
            for (id, path) in ["/", "/a/b", "/a"].enumerated() {
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(id + 2),"method":"messages.listen","params":{"path":"\#(path)"}}"#)
                var answer = try await line.next()
                while answer["id"]?.number != Double(id + 2) { answer = try await line.next() }
                names[answer["result"]?["subscription"]?.string ?? ""] = path
                while try await line.next()["method"] != "messages.event" {}
            }
            try await line.send(#"{"jsonrpc":"2.0","id":9,"method":"messages.set","params":{"path":"/a/b","value":7}}"#)
            var sent: [String?] = []
            while sent.count < 3 {
                let message = try await line.next()
                if message["method"] == "messages.event" {
                    sent.append(names[message["params"]?["subscription"]?.string ?? ""])
                }
            }
            #expect(sent == ["/a/b", "/a", "/"])
            line.close()
        }
    }

    @Test func listenerOfATakenAwayRightIsCancelled() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/a")))
            _ = try await events.next()
            _ = try await running.administrator.call(Messages.Rules.Set(rules: DefaultRules.deny))
            #expect(try await events.nextNotification()?.method == Messages.Cancelled.method)
            #expect(events.last?.params["reason"] == "permission_denied")
            let refused = await refusal { try await running.user("b").subscribe(Messages.Listen(path: "/a")) }
            #expect(refused?.code == .permissionDenied)
        }
    }

    @Test func unlistenEndsTheEvents() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            let subscription = try await client.subscribe(Messages.Listen(path: "/a"))
            _ = try await client.call(Messages.Unlisten(subscription: subscription.id))
            #expect(try await running.administrator.call(Messages.Stats()).listeners == 0)
            let again = await refusal { try await client.call(Messages.Unlisten(subscription: subscription.id)) }
            #expect(again?.code == .notFound)
        }
    }

    @Test func resumingSendsOnlyWhatCameAfter() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            let first = try await client.call(Messages.Set(path: "/a", value: ["x": 1, "y": 1])).version
            let second = try await client.call(Messages.Set(path: "/a/x", value: 2)).version
            let epoch = running.store.epoch.description
            var events = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", resume: .init(since: first, epoch: epoch))))
            #expect(try await events.next() == [.put("/x", 2)])
            // Nothing since: the next event is the next change.
            var current = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", resume: .init(since: second, epoch: epoch))))
            _ = try await client.call(Messages.Set(path: "/a/y", value: 2))
            #expect(try await current.next() == [.put("/y", 2)])
            var foreign = EventReader(
                try await client.subscribe(
                    Messages.Listen(path: "/a", resume: .init(since: second, epoch: String(repeating: "0", count: 32))))
            )
            #expect(try await foreign.next() == [.put("/", ["x": 2, "y": 2])])
        }
    }

    @Test func unchangedEtagSkipsTheFirstEvent() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            _ = try await client.call(Messages.Set(path: "/a", value: 1))
            let etag = try #require(try await client.call(Messages.Get(path: "/a", etag: true)).etag)
            var events = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", resume: .init(etag: etag))))
            _ = try await client.call(Messages.Set(path: "/a", value: 2))
            #expect(try await events.next() == [.put("/", 2)])
        }
    }

    @Test func etagOfNothingSkipsTheFirstEventOfNothing() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            var events = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", resume: .init(etag: "null_etag"))))
            _ = try await client.call(Messages.Set(path: "/a", value: 1))
            #expect(try await events.next() == [.put("/", 1)])
            var later = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", resume: .init(etag: "null_etag"))))
            #expect(try await later.next() == [.put("/", 1)])
        }
    }

    /// The priority alone makes it another node.
    @Test func etagThatIsNoMoreBringsTheWholeValue() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            _ = try await client.call(Messages.Set(path: "/a", value: [".value": 1, ".priority": 1]))
            let etag = try #require(try await client.call(Messages.Get(path: "/a", etag: true)).etag)
            _ = try await client.call(Messages.Set(path: "/a", value: [".value": 1, ".priority": 2]))
            var events = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", resume: .init(etag: etag))))
            #expect(try await events.next() == [.put("/", [".value": 1, ".priority": 2])])
        }
    }

    @Test func limitOfListenersHolds() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersPerConnectionMax = 2 }) { running in
            let client = running.user("a")
            var held: [RPCSubscription] = []
            defer { withExtendedLifetime(held) {} }
            for _ in 0..<2 { held.append(try await client.subscribe(Messages.Listen(path: "/a"))) }
            let refused = await refusal { try await client.subscribe(Messages.Listen(path: "/a")) }
            #expect(refused?.reason == "too_many_listeners")
            _ = try await running.user("b").subscribe(Messages.Listen(path: "/a"))
        }
    }

    @Test func gatheredChangesComeInOneNotification() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            var listen = Messages.Listen(path: "/a")
            listen.coalesceMs = 300
            var events = EventReader(try await client.subscribe(listen))
            _ = try await events.next()
            // Another connection writes: own writes are sent at once.
            let writer = running.administrator
            for number in 1...20 {
                _ = try await writer.call(Messages.Set(path: TreePath("/a/k"), value: .number(Double(number))))
            }
            var seen: [JSONValue] = []
            while seen.last != 20 {
                for case .put("/k", let value) in try await events.next() { seen.append(value) }
            }
            #expect(seen.count < 20)
        }
    }
}

/// Reads the events of one listener.
struct EventReader {
    private var iterator: RPCSubscription.AsyncIterator
    private(set) var last: RPCEvent?

    init(_ subscription: RPCSubscription) { iterator = subscription.makeAsyncIterator() }

    mutating func nextNotification() async throws -> RPCEvent? {
        last = try await iterator.next()
        return last
    }

    /// The entries of the next notification.
    mutating func next() async throws -> [SeenEvent] {
        guard let event = try await nextNotification() else { throw EndOfEvents() }
        return try Messages.Event.decode(event.params).events.map { SeenEvent($0) }
    }
}

struct EndOfEvents: Error {}

enum SeenEvent: Equatable {
    case put(String, JSONValue)
    case patch(String, JSONValue)

    init(_ entry: Messages.Event.Entry) {
        self = entry.type == .put ? .put(entry.path, entry.data) : .patch(entry.path, entry.data)
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct SlowListenerTests {
    @Test func listenerThatDoesNotReadGetsWhatItMissedMerged() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let line = try await RawLines.connect(running, readsAtOnce: false)
            try await line.send(
                #"{"jsonrpc":"2.0","id":1,"method":"messages.listen","params":{"auth":"admin","path":"/a"}}"#)
            try await waitForListeners(1, client)
            let text = String(repeating: "x", count: 50_000)
            for number in 0..<300 {
                let value: JSONValue = ["n": .number(Double(number)), "text": .string(text)]
                _ = try await client.call(Messages.Set(path: TreePath("/a/k\(number % 3)"), value: value))
            }
            line.startReading()
            var tree = TreeNode.empty
            var bytes = 0
            while tree.child(try TreeKey("k2")).child(try TreeKey("n")).leaf != .number(299) {
                let message = try await line.next()
                guard let events = message["params"]?["events"]?.array else { continue }
                bytes += message.encoded.count
                for event in events {
                    let path = try TreePath(event["path"]?.string ?? "")
                    if event["type"] == "put" {
                        tree = tree.setting(try TreeNode(json: event["data"] ?? .null), at: path)
                    } else {
                        for member in event["data"]?.object?.members ?? [] {
                            let place = try path.appending(TreePath(member.name))
                            tree = tree.setting(try TreeNode(json: member.value), at: place)
                        }
                    }
                }
            }
            let now = try await client.call(Messages.Get(path: "/a"))
            #expect(tree.plain == now.value)
            // 15 MB were written: what the kernel's buffers and 1 MiB held came, then the rest in one.
            #expect(bytes < 12_000_000, "\(bytes) bytes")
            line.close()
        }
    }

    @Test func slowListenerDelaysNoOther() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let stuck = try await RawLines.connect(running, readsAtOnce: false)
            try await stuck.send(
                #"{"jsonrpc":"2.0","id":1,"method":"messages.listen","params":{"auth":"admin","path":"/a"}}"#)
            try await waitForListeners(1, client)
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/a")))
            _ = try await events.next()
            let text = JSONValue.string(String(repeating: "x", count: 50_000))
            for number in 0..<200 {
                _ = try await client.call(Messages.Set(path: "/a/text", value: text))
                _ = try await client.call(Messages.Set(path: "/a/n", value: .number(Double(number))))
                if number == 0 { #expect(try await events.next() == [.put("/text", text)]) }
                #expect(try await events.next() == [.put("/n", .number(Double(number)))])
            }
            stuck.close()
            try await waitForListeners(1, client)
        }
    }

    /// Changes of several times the budget: what a follower has not received stays in the store.
    @Test func followerThatDoesNotReadDelaysNoOtherAndGetsEachChange() async throws {
        try await RunningMessages.with(change: { $0.server.limits.processBytesInFlightMax = 4 << 20 }) { running in
            let client = running.administrator
            let stuck = try await RawLines.connect(running, readsAtOnce: false)
            for id in 1...2 {
                try await stuck.send(
                    "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"messages.follow\",\"params\":{\"auth\":\"admin\"}}")
            }
            try await eventually("2 followers") { try await client.call(Messages.Stats()).followers == 2 }
            var feed = FeedReader(try await client.subscribe(Messages.Follow()))
            let text = JSONValue.string(String(repeating: "x", count: 200_000))
            var versions: [UInt64] = []
            for number in 0..<60 {
                let value: JSONValue = ["n": .number(Double(number)), "text": text]
                versions.append(try await client.call(Messages.Set(path: "/a", value: value)).version)
                #expect(try await feed.next().version == versions.last)
                #expect(try await client.call(Messages.Get(path: "/a/text")).value == text)
            }
            stuck.startReading()
            var seen: [String: [UInt64]] = [:]
            while seen.values.reduce(0, { $0 + $1.count }) < 2 * versions.count {
                let message = try await stuck.next()
                guard message["method"] == "messages.change", let params = message["params"] else { continue }
                let version = try #require(params["version"]?.number)
                seen[params["subscription"]?.string ?? "", default: []].append(UInt64(version))
            }
            #expect(seen.count == 2 && seen.values.allSatisfy { $0 == versions })
            stuck.close()
        }
    }

    @Test func slowWindowIsSentAnew() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let line = try await RawLines.connect(running, readsAtOnce: false)
            try await line.send(
                #"{"jsonrpc":"2.0","id":1,"method":"messages.listen","params":{"auth":"admin","path":"/chats/c/messages","query":{"orderBy":"date","limitToLast":2}}}"#
            )
            try await waitForListeners(1, client)
            let text = String(repeating: "x", count: 50_000)
            for number in 0..<200 {
                let value: JSONValue = ["date": .number(Double(number)), "text": .string(text)]
                _ = try await client.call(Messages.Set(path: TreePath("/chats/c/messages/m\(number)"), value: value))
            }
            line.startReading()
            var tree = TreeNode.empty
            let (last, secondLast) = (try TreeKey("m199"), try TreeKey("m198"))
            while tree.child(last).isEmpty || tree.children?.count != 2 {
                for event in try await line.next()["params"]?["events"]?.array ?? [] {
                    if event["path"] == "/", event["type"] == "put" {
                        tree = try TreeNode(json: event["data"] ?? .null)
                    } else {
                        for member in event["data"]?.object?.members ?? [] {
                            tree = tree.setting(try TreeNode(json: member.value), at: try TreePath(member.name))
                        }
                    }
                }
            }
            #expect(tree.children?.map(\.key) == [secondLast, last])
            line.close()
        }
    }

    @Test func closedConnectionLeavesNothingBehind() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            let held = [
                try await client.subscribe(Messages.Listen(path: "/a")),
                try await client.subscribe(
                    Messages.Listen(path: "/b", query: TreeQuery(order: .key, limit: .last(1)))),
            ]
            defer { withExtendedLifetime(held) {} }
            try await waitForListeners(2, running.administrator)
            await client.close()
            try await waitForListeners(0, running.administrator)
        }
    }

    private func waitForListeners(_ count: Int, _ client: RPCClient) async throws {
        try await eventually("\(count) listeners") { try await client.call(Messages.Stats()).listeners == count }
    }
}

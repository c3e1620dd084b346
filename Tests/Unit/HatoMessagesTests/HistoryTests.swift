import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

/// Random writes from several clients: what a listener was first sent, with every later event applied to it, is the
/// tree.
@Suite struct HistoryTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64]) func firstValueAndLaterEventsMakeTheTree(seed: UInt64) async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            var random = SeededRandom(seed: seed)
            var listeners: [Mirror] = []
            for (index, listen) in Self.listens.enumerated() {
                if index.isMultiple(of: 2) { listeners.append(try await Mirror(running, listen)) }
            }
            try await write(120, with: client, &random)
            for (index, listen) in Self.listens.enumerated() {
                if !index.isMultiple(of: 2) { listeners.append(try await Mirror(running, listen)) }
            }
            // Two clients at a time from here on, and listeners that come while they write.
            async let others: Void = write(150, with: running.administrator, SeededRandom(seed: seed + 100))
            try await write(100, with: client, &random)
            for listen in Self.listens { listeners.append(try await Mirror(running, listen)) }
            try await write(100, with: client, &random)
            try await others
            for listener in listeners { try await listener.expectToArrive(client, seed) }
        }
    }

    private static let rules = #"{"rules": {"c": {".indexOn": ["v", "w/x"]}}}"#

    private static let listens: [Messages.Listen] = [
        Messages.Listen(path: "/"), Messages.Listen(path: "/c"), Messages.Listen(path: "/c/k1"),
        Messages.Listen(path: "/c/k2/w/x"),
        Messages.Listen(path: "/c", query: TreeQuery(order: .child("/v"), limit: .last(2))),
        Messages.Listen(path: "/c", query: TreeQuery(order: .child("/v"), limit: .first(3))),
        Messages.Listen(path: "/c", query: TreeQuery(order: .key, limit: .last(1))),
        Messages.Listen(
            path: "/c",
            query: TreeQuery(order: .child("/w/x"), start: TreeQuery.Cut(.leaf(.number(2)), .beforeAll))),
        Messages.Listen(path: "/c", query: TreeQuery(order: .child("/none"), limit: .first(2))),
        Messages.Listen(path: "/c", query: TreeQuery(order: .priority, limit: .last(2))),
    ]

    private func write(_ count: Int, with client: RPCClient, _ random: SeededRandom) async throws {
        var random = random
        try await write(count, with: client, &random)
    }

    private func write(_ count: Int, with client: RPCClient, _ random: inout SeededRandom) async throws {
        for _ in 0..<count {
            let key = "k\(Int.random(in: 0..<6, using: &random))"
            let number = JSONValue.number(Double(Int.random(in: 0..<5, using: &random)))
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                let value: JSONValue = ["v": number, "w": ["x": number], ".priority": number]
                _ = try await client.call(Messages.Set(path: TreePath("/c/\(key)"), value: value))
            case 3...4: _ = try await client.call(Messages.Set(path: TreePath("/c/\(key)/v"), value: number))
            case 5: _ = try await client.call(Messages.Set(path: TreePath("/c/\(key)"), value: number))
            case 6: _ = try await client.call(Messages.Remove(path: TreePath("/c/\(key)")))
            case 7:
                _ = try await client.call(
                    Messages.Update(path: "/c", values: ["\(key)/w/x": number, "k0/v": number, "other": number]))
            case 8: _ = try await client.call(Messages.Set(path: TreePath("/c/\(key)/.priority"), value: number))
            default:
                if Int.random(in: 0..<4, using: &random) == 0 {
                    _ = try await client.call(Messages.Set(path: "/c", value: ["k1": ["v": number], "k9": number]))
                } else {
                    _ = try await client.call(Messages.Remove(path: TreePath("/c/\(key)/w")))
                }
            }
        }
    }
}

/// What a client makes of the events of one listener.
final class Mirror: Sendable {
    private let listen: Messages.Listen
    private let client: RPCClient
    private let box: MirrorBox
    private let reading: Task<Void, any Error>

    init(_ running: RunningMessages, _ listen: Messages.Listen) async throws {
        self.listen = listen
        client = running.administrator
        let subscription = try await client.subscribe(listen)
        let box = MirrorBox()
        reading = Task {
            for try await event in subscription where event.method == Messages.Event.method {
                for entry in try Messages.Event.decode(event.params).events { try box.apply(entry) }
            }
        }
        self.box = box
    }

    /// Waits until the mirror shows what a read shows.
    func expectToArrive(_ client: RPCClient, _ seed: UInt64) async throws {
        let wanted = try await expected(client)
        try await eventually("seed \(seed), \(listen.path) \(listen.query.map { "\($0.json)" } ?? "")") {
            box.tree == wanted
        }
        reading.cancel()
    }

    private func expected(_ client: RPCClient) async throws -> TreeNode {
        let whole = try TreeNode(json: try await client.call(Messages.Get(path: listen.path, form: .export)).value)
        guard let query = listen.query else { return whole }
        return .object(unsorted: query.select(from: whole).map { TreeChild(key: $0.key, node: $0.node) })
    }
}

private final class MirrorBox: Sendable {
    private let state = Mutex<TreeNode?>(nil)

    var tree: TreeNode? { state.withLock { $0 } }

    func apply(_ entry: Messages.Event.Entry) throws {
        let base = try TreePath(entry.path)
        var places: [(TreePath, JSONValue)] = []
        switch entry.type {
        case .put: places = [(base, entry.data)]
        case .patch:
            for member in entry.data.object?.members ?? [] {
                places.append((try base.appending(TreePath(member.name)), member.value))
            }
        }
        for (path, value) in places {
            let node = try TreeNode(json: value)
            state.withLock { $0 = ($0 ?? .empty).setting(node, at: path) }
        }
    }
}

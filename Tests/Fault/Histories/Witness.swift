import HatoModel
import HatoRPC
import HatoTesting
import Synchronization

/// A follower of everything and a listener, which reconnect after every kill of the service and resume from their
/// position.
final class Witness: Sendable {
    private struct Position {
        var follower: UInt64 = 0
        var listener: UInt64?
        var epoch: String?
        var node = TreeNode.empty
    }

    let history: RecordedHistory
    private let position = Mutex(Position())

    init(_ history: RecordedHistory) { self.history = history }

    /// Listens and follows during one run of the service; the task ends with it.
    func attend(_ client: RPCClient) async throws -> Task<Void, any Error> {
        let (after, since, epoch) = position.withLock { ($0.follower, $0.listener, $0.epoch) }
        var following: JSONObject = ["after": .number(Double(after))]
        var listening: JSONObject = ["path": .string(RandomLoad.keys.text)]
        if let epoch {
            following["epoch"] = .string(epoch)
            if let since {
                listening["since"] = .number(Double(since))
                listening["epoch"] = .string(epoch)
            }
        }
        let changes = try await client.subscribe(method: "messages.follow", params: following)
        let events = try await client.subscribe(method: "messages.listen", params: listening)
        guard let now = events.result["epoch"]?.string, epoch == nil || epoch == now else {
            throw DeadlineExceeded("the store keeps its epoch")
        }
        position.withLock { $0.epoch = now }
        return Task {
            async let followed: Void = follow(changes)
            async let listened: Void = listen(events)
            _ = try await (followed, listened)
            await client.close()
        }
    }

    private func follow(_ changes: RPCSubscription) async throws {
        do {
            for try await event in changes {
                guard let commit = try Self.commit(event) else { continue }
                history.add(commit)
                position.withLock { $0.follower = commit.version }
            }
        } catch let error as RPCError where error.code == .unavailable {}
    }

    /// Nil: an event with nothing but a position.
    static func commit(_ event: RPCEvent) throws -> SeenCommit? {
        guard let version = event.params["version"]?.number else { throw DeadlineExceeded("a change has a version") }
        var changes: [TreePath: JSONValue] = [:]
        for change in event.params["changes"]?.array ?? [] {
            changes[try TreePath(change["path"]?.string ?? "")] = change["after"] ?? .null
        }
        return changes.isEmpty ? nil : SeenCommit(version: UInt64(version), changes: changes)
    }

    private func listen(_ events: RPCSubscription) async throws {
        do {
            for try await event in events {
                guard let version = event.params["version"]?.number.map({ UInt64($0) }) else { continue }
                var node = position.withLock { $0.node }
                for part in event.params["events"]?.array ?? [] { node = try Self.apply(part, to: node) }
                history.add(SeenState(version: version, node: node))
                position.withLock { ($0.node, $0.listener) = (node, version) }
            }
        } catch let error as RPCError where error.code == .unavailable {}
    }

    private static func apply(_ event: JSONValue, to node: TreeNode) throws -> TreeNode {
        let path = try TreePath(event["path"]?.string ?? "")
        guard event["type"] == "patch" else {
            return node.setting(try TreeNode(json: event["data"] ?? .null), at: path)
        }
        var node = node
        for member in event["data"]?.object?.members ?? [] {
            node = node.setting(try TreeNode(json: member.value), at: try path.appending(TreePath(member.name)))
        }
        return node
    }

    /// Waits until the follower has seen a version.
    func hasSeen(_ version: UInt64) async throws {
        _ = try await waiting(for: "the follower at version \(version)") {
            position.withLock { $0.follower >= version } ? true : nil
        }
    }
}

import HatoModel
import HatoRPC
import HatoRules
import HatoTree

@testable import HatoMessages

/// The client's side of one listener: folds what it hears, and says when that is not what the tree held.
final class HistoryListener {
    let path: TreePath
    let query: TreeQuery?
    let caller: Caller
    let coalesceMs: Int
    var peer: HistoryPeer
    var subscription: String
    /// Whether its request has its response.
    var isOpen = false
    var hasEnded = false
    /// The version from which on it may have been authorised.
    var asked: UInt64 = 0
    /// Up to here it knows everything.
    private(set) var version: UInt64 = 0
    private(set) var sight: ChildEventReducer
    private(set) var heard = 0

    init(_ request: Messages.Listen, by caller: Caller, on peer: HistoryPeer, as subscription: String) {
        path = request.path
        query = request.query.flatMap { $0.isDefault ? nil : $0 }
        coalesceMs = request.coalesceMs ?? 0
        self.caller = caller
        self.peer = peer
        self.subscription = subscription
        sight = ChildEventReducer(request.query ?? TreeQuery())
    }

    var name: String {
        let what = query.map { EncodedJSON($0.json).text } ?? "everything"
        return "\(what) at \(path) by \(caller.uid ?? "admin")\(coalesceMs > 0 ? ", gathering" : "")"
    }

    func view(of tree: TreeNode) -> TreeNode {
        let node = tree.node(at: path)
        return query.map { .object(unsorted: $0.select(from: node)) } ?? node
    }

    func mayRead(_ state: HistoryState) throws -> Bool {
        if caller.isAdministrator { return true }
        let situation = RulesContext(
            auth: RulesAuth(caller), now: 0, before: state.node, query: query.map { RulesQuery($0) } ?? RulesQuery())
        return try state.rules.authoriseRead(path, situation).isAllowed
    }

    func forget() {
        sight = ChildEventReducer(query ?? TreeQuery())
        version = 0
    }

    /// It goes on with what it sees, not knowing from when that is.
    func forgetVersion() { version = 0 }

    func hear(_ event: Messages.Event) throws {
        heard += 1
        guard event.version >= version else { throw HistoryFailure("version \(event.version) after \(version)") }
        version = event.version
        _ = try sight.apply(event.events)
    }

    func knows(_ version: UInt64) { self.version = max(self.version, version) }

    /// What is wrong with what it sees, if it should see this.
    ///
    /// - Parameter authorised: the state by which it may.
    func problem(_ state: HistoryState, authorised: HistoryState) throws -> String? {
        let expected = view(of: state.node)
        guard sight.node == expected else {
            return "sees \(Self.text(sight.node)) instead of \(Self.text(expected)) at version \(version)"
        }
        return try mayRead(authorised) ? nil : "saw version \(version), which it may not read"
    }

    private static func text(_ node: TreeNode) -> String {
        var writer = JSONWriter()
        writer.write(node.export)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

/// The tree and its rules after a commit.
struct HistoryState {
    var version: UInt64
    var node: TreeNode
    var rules: Rules
}

struct HistoryFailure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

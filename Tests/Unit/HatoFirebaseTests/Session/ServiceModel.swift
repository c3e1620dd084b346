import HatoModel

@testable import HatoFirebase

/// A simple model of messages: one tree, listeners, and the writes of the session's end. It responds in the order of
/// the native protocol: the events of a write before its response, the first event of a listener behind the response
/// that opened it. Its events are those of the service: a put or a patch of what was written, or the whole value.
struct ServiceModel {
    typealias Write = (path: TreePath, value: JSONValue)

    private struct Listener {
        var subscription: String
        var path: TreePath
        var query: TreeQuery
        /// Events that were not sent yet.
        var pending: [JSONValue] = []

        func view(of tree: TreeNode) -> TreeNode {
            query.isDefault ? tree.node(at: path) : .object(unsorted: query.select(from: tree.node(at: path)))
        }

        static func put(_ path: TreePath, _ node: TreeNode) -> JSONValue {
            ["type": "put", "path": .string(path.text), "data": node.export]
        }
    }

    /// What happens to a call.
    enum Fate { case usual, denied, indexIsBuilt }

    /// What goes to the session, in order, each with the tree as of then.
    private(set) var sent: [(event: SessionStateMachine.Event, tree: TreeNode)] = []
    private(set) var tree = TreeNode.empty
    private(set) var deferred = DeferredModel()
    /// The session's writes that were made, the first is 1, each with the hash of what it replaced at its path.
    private(set) var made: [Int: String] = [:]
    private var writes = 0
    private var listeners: [Listener] = []
    private var lastSubscription = 0
    private var isTokenOver = false

    var listenerCount: Int { listeners.count }

    mutating func takeSent() -> (event: SessionStateMachine.Event, tree: TreeNode)? {
        sent.isEmpty ? nil : sent.removeFirst()
    }

    // MARK: Writes

    /// Other clients make commits. A listener gets one notification of all of them: the events of each, or the value
    /// after the last where it has fallen behind.
    ///
    /// Where a default listener is below another one, each commit has its own: on a socket the pushes of both look the
    /// same, and the older state of one would overwrite the newer of the other. SDKs end the lower one at once.
    mutating func write(_ commits: [[Write]], isBehind: Bool) throws {
        let before = tree
        for commit in commits {
            try make(commit)
            if hasOverlap, !isBehind { notify() }
        }
        for index in listeners.indices where isBehind {
            let (old, new) = (listeners[index].view(of: before), listeners[index].view(of: tree))
            listeners[index].pending = old == new ? [] : [Listener.put(.root, new)]
        }
        notify()
    }

    private var hasOverlap: Bool {
        let paths = listeners.filter(\.query.isDefault).map(\.path)
        return paths.contains { path in paths.contains { $0 != path && $0.isAtOrAbove(path) } }
    }

    private mutating func make(_ commit: [Write]) throws {
        let before = tree
        for write in commit.filter({ !$0.path.isPriority }) + commit.filter(\.path.isPriority) {
            tree = tree.setting(try TreeNode(json: write.value), at: write.path)
        }
        for index in listeners.indices {
            let isDefault = listeners[index].query.isDefault
            listeners[index].pending += try [
                isDefault
                    ? event(of: commit, before, for: listeners[index])
                    : windowEvent(of: commit, before, for: listeners[index])
            ].compactMap { $0 }
        }
    }

    private mutating func notify() {
        for index in listeners.indices where !listeners[index].pending.isEmpty {
            let params: JSONValue = [
                "subscription": .string(listeners[index].subscription), "version": 1,
                "events": .array(listeners[index].pending),
            ]
            listeners[index].pending = []
            send(.notified(.init(subscription: listeners[index].subscription, params: params.encoded[...])))
        }
    }

    // MARK: Events

    /// What was written at and below the listener; the whole node when something above it was written.
    private func event(of commit: [Write], _ before: TreeNode, for listener: Listener) -> JSONValue? {
        var entries: [TreePath] = []
        for write in commit {
            if let relative = write.path.relative(to: listener.path) {
                entries.append(relative)
            } else if write.path.isAtOrAbove(listener.path), listener.view(of: before) != listener.view(of: tree) {
                entries.append(.root)
            }
        }
        return event(with: entries, for: listener)
    }

    /// Children that left a window or came into it, and what was written in those that stay.
    private func windowEvent(of commit: [Write], _ before: TreeNode, for listener: Listener) throws -> JSONValue? {
        let old = listener.view(of: before).children.map { $0.map(\.key) } ?? []
        let new = listener.view(of: tree).children.map { $0.map(\.key) } ?? []
        if commit.contains(where: { $0.path.isAtOrAbove(listener.path) }) {
            guard before.node(at: listener.path) != tree.node(at: listener.path) else { return .none }
            return Listener.put(.root, listener.view(of: tree))
        }
        var entries = try (old.filter { !new.contains($0) } + new.filter { !old.contains($0) })
            .map { try TreePath(keys: [$0]) }
        for write in commit {
            guard let key = write.path.relative(to: listener.path)?.keys.first else { continue }
            guard old.contains(key), new.contains(key) else { continue }
            let settled = settled(write.path, before).relative(to: listener.path)
            try entries.append(settled.flatMap { $0.depth > 0 ? $0 : nil } ?? TreePath(keys: [key]))
        }
        let outermost = Set(entries).filter { entry in !entries.contains { $0 != entry && $0.isAtOrAbove(entry) } }
        return event(with: entries.filter { outermost.contains($0) }, for: listener)
    }

    /// The highest path that a write determined: that of a leaf which became an object, or of a parent that vanished
    /// with its last child, or its own.
    private func settled(_ path: TreePath, _ before: TreeNode) -> TreePath {
        for depth in 0..<path.depth {
            let (old, new) = (before.node(at: path.prefix(depth)), tree.node(at: path.prefix(depth)))
            if old.leaf != nil && new.leaf == nil || !old.isEmpty && new.isEmpty { return path.prefix(depth) }
        }
        return path
    }

    /// The shortest event with the current nodes at these paths. Priorities come last.
    private func event(with entries: [TreePath], for listener: Listener) -> JSONValue? {
        let view = listener.view(of: tree)
        if entries.contains(.root) { return Listener.put(.root, view) }
        if entries.count < 2 { return entries.first.map { Listener.put($0, view.node(at: $0)) } }
        var data = JSONObject()
        for entry in entries.filter({ !$0.isPriority }) + entries.filter(\.isPriority) {
            data[String(entry.text.dropFirst())] = view.node(at: entry).export
        }
        return ["type": "patch", "path": "/", "data": .object(data)]
    }

    // MARK: Listeners

    /// Some listeners lose their right.
    mutating func revoke(_ isRevoked: () -> Bool) {
        let revoked = listeners.map(\.subscription).filter { _ in isRevoked() }
        listeners.removeAll { revoked.contains($0.subscription) }
        for subscription in revoked { cancel(subscription, "permission_denied") }
    }

    /// The token of the session ends.
    mutating func endToken() {
        isTokenOver = true
        for listener in listeners { cancel(listener.subscription, "token_expired") }
        listeners = []
    }

    private mutating func cancel(_ subscription: String, _ reason: String) {
        let params: JSONValue = ["subscription": .string(subscription), "reason": .string(reason)]
        send(.notified(.init(isEnd: true, subscription: subscription, params: params.encoded[...])))
    }

    /// The connection ends, and the writes that were registered for it are made.
    mutating func endConnection() throws {
        (listeners, sent, made, writes) = ([], [], [:], 0)
        try make(deferred.nodes.map { ($0.key, $0.value.export) })
        deferred = DeferredModel()
    }

    // MARK: Calls

    /// Responds to a call. Throws when the call is wrong.
    mutating func take(_ call: Int, _ method: String, _ text: [UInt8], _ fate: Fate) throws {
        let params = try JSONParser.parse(text)
        let isWrite = method == "messages.set" || method == "messages.update"
        if isWrite { writes += 1 }
        if method == "messages.unlisten" {
            let count = listeners.count
            listeners.removeAll { $0.subscription == params["subscription"]?.string }
            guard listeners.count < count else { return refuse(call, .notFound(reason: "no_listener", "It has ended")) }
            return succeed(call, [:])
        }
        if method == "session.end" { return succeed(call, [:]) }
        if isTokenOver { return refuse(call, .unauthenticated(reason: "TOKEN_EXPIRED", "It has expired")) }
        switch fate {
        case .usual: break
        case .denied: return refuse(call, .permissionDenied())
        case .indexIsBuilt: return refuse(call, .failedPrecondition(reason: "index_building", "It is being built"))
        }
        if method == "session.authenticate" { return succeed(call, ["uid": "u1", "admin": false, "expiresAt": nil]) }
        let path = try TreePath(params["path"]?.string ?? "no path")
        let query = try params["query"].map { try TreeQuery($0) } ?? TreeQuery()
        switch method {
        case "messages.listen":
            listen(call, Listener(subscription: "", path: path, query: query), params["etag"]?.string)
        case "messages.get":
            let reader = Listener(subscription: "", path: path, query: query)
            if case .child = query.order, !Self.hasIndex(path) {
                return refuse(call, .failedPrecondition(reason: "index_not_defined", "Index not defined"))
            }
            succeed(call, ["value": reader.view(of: tree).export, "version": 1])
        case "messages.onDisconnect.cancel":
            deferred.cancel(at: path)
            succeed(call, [:])
        case "messages.onDisconnect.set", "messages.onDisconnect.update":
            for write in try Self.commit(params, at: path) {
                deferred.set(try TreeNode(json: write.value), at: write.path)
            }
            succeed(call, [:])
        default:
            if let etag = params["ifMatch"]?.string, etag != Self.etag(of: tree.node(at: path)) {
                return refuse(call, .failedPrecondition(reason: "etag_mismatch", "It differs"))
            }
            made[writes] = tree.node(at: path).standInHash
            try make(try Self.commit(params, at: path))
            notify()
            succeed(call, ["version": 1])
        }
    }

    private static func commit(_ params: JSONValue, at path: TreePath) throws -> [Write] {
        guard let values = params["values"]?.object else { return [(path, params["value"] ?? "no value")] }
        return try values.members.map { (try path.appending(TreePath($0.name)), $0.value) }
    }

    private mutating func listen(_ call: Int, _ new: Listener, _ etag: String?) {
        var new = new
        lastSubscription += 1
        new.subscription = "l\(lastSubscription)"
        var result: JSONObject = ["subscription": .string(new.subscription), "version": 1, "epoch": "e"]
        if case .child = new.query.order, !Self.hasIndex(new.path) { result["warning"] = "no_index" }
        if etag == Self.etag(of: new.view(of: tree)) {
            result["unchanged"] = true
        } else {
            new.pending = [Listener.put(.root, new.view(of: tree))]
        }
        succeed(call, .object(result))
        listeners.append(new)
        notify()
    }

    /// Where there is an index of a child.
    static func hasIndex(_ path: TreePath) -> Bool { path.depth == 1 }

    private static func etag(of node: TreeNode) -> String { node.isEmpty ? "null_etag" : node.standInHash }

    private mutating func send(_ event: SessionStateMachine.Event) { sent.append((event, tree)) }

    private mutating func succeed(_ call: Int, _ result: JSONValue) {
        send(.succeeded(call: call, result: result.encoded[...]))
    }

    private mutating func refuse(_ call: Int, _ error: RPCError) { send(.refused(call: call, error)) }
}

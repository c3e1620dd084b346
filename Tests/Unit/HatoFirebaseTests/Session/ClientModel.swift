import HatoModel

@testable import HatoFirebase

/// A client that keeps what it is sent as an SDK does, and knows what it must see: each of its checks is a promise of
/// the protocol (spec realtime-database §8.4-§8.8).
///
/// Pushes without a tag belong to one tree, whichever listens they are for; those with a tag to one query.
struct ClientModel {
    /// A listen as the client sees it.
    struct Listen {
        var path: TreePath
        var query: SampleQuery
        /// Of a query; the default one has none.
        var tag: Int?
        var isAcknowledged = false
        /// What a query selects.
        var selected = TreeNode.empty

        var name: String { "\(path.text) \(query.text)" }

        /// What it must see.
        func view(of tree: TreeNode) -> TreeNode { query.view(of: tree.node(at: path)) }
    }

    private enum Request {
        case listen(Int)
        case unlisten
        case write(Write)
        case read(TreePath, SampleQuery)
        case onDisconnect(action: String, TreePath, [Entry])
        case authentication
        /// What the gateway responds to by itself.
        case noted

        var name: String {
            switch self {
            case .listen: "listen"
            case .unlisten: "unlisten"
            case .write(let write): write.hash == nil ? write.action : "transaction"
            case .read: "read"
            case .onDisconnect(let action, _, _): action
            case .authentication: "authentication"
            case .noted: "noted"
            }
        }
    }

    private struct Entry {
        var path: TreePath
        var value: JSONValue
    }

    /// A set, a transaction or an update.
    private struct Write {
        /// How many of them were sent before it, and itself.
        var number: Int
        var action: String
        var body: String
        /// Of a transaction: the hash of what it was made from.
        var hash: String?
        var entries: [Entry]
    }

    /// By a number that a listen keeps.
    private(set) var listens: [Int: Listen] = [:]
    private(set) var isOver = false
    /// Whether the service has ended the token.
    var tokenHasEnded = false
    /// What the session does when it ends, as far as the responses say.
    private(set) var deferred = DeferredModel()
    /// The hashes from which transactions were made that have succeeded, by the numbers of these writes.
    private(set) var transactions: [Int: String] = [:]
    /// Pushes of data that have come.
    private(set) var pushes = 0
    /// Kinds of what has come.
    private(set) var kinds: Set<String> = []
    private var tree = TreeNode.empty
    /// What ended listens have seen, by their names.
    private var known: [String: TreeNode] = [:]
    private var requests: [(number: Int, request: Request)] = []
    /// Requests that a later one overtook.
    private var overtaken: [(number: Int, request: Request)] = []
    private var lastNumber = 0
    private var lastListen = 0
    private var writes = 0

    /// Requests without a response.
    var waiting: Int { requests.count + overtaken.count }

    /// The numbers of writes without a response.
    var withoutResponse: Set<Int> {
        Set((requests + overtaken).compactMap { if case .write(let write) = $0.request { write.number } else { nil } })
    }

    private mutating func send(_ request: Request, _ action: String, _ body: String) -> String {
        lastNumber += 1
        requests.append((lastNumber, request))
        return "{\"t\":\"d\",\"d\":{\"r\":\(lastNumber),\"a\":\"\(action)\",\"b\":\(body)}}"
    }

    private static func text(_ json: JSONValue) -> String { String(decoding: json.encoded, as: UTF8.self) }

    /// The member of a path.
    private static func p(_ path: TreePath) -> String { "\"p\":\(text(.string(path.text)))" }

    // MARK: Requests

    /// Listens, perhaps with the hash of what is known; empty when there is an equal listen.
    mutating func listen(_ path: TreePath, _ query: SampleQuery, isHashed: Bool) -> String {
        guard !listens.values.contains(where: { $0.path == path && $0.query == query }) else { return "" }
        lastListen += 1
        var listen = Listen(path: path, query: query, tag: query.isDefault ? nil : lastListen)
        if isHashed { listen.selected = known[listen.name] ?? .empty }
        listens[lastListen] = listen
        return listenAgain(lastListen, isHashed: isHashed)
    }

    private mutating func listenAgain(_ id: Int, isHashed: Bool) -> String {
        guard let listen = listens[id] else { return "" }
        let hash = isHashed ? seen(by: listen).standInHash : ""
        let query = listen.tag.map { ",\"q\":\(listen.query.text),\"t\":\($0)" } ?? ""
        return send(.listen(id), "q", "{\(Self.p(listen.path))\(query),\"h\":\"\(hash)\"}")
    }

    private func seen(by listen: Listen) -> TreeNode {
        listen.query.isDefault ? tree.node(at: listen.path) : listen.selected
    }

    /// Ends a listen; from now on nothing may be pushed for it.
    mutating func unlisten(_ id: Int) -> String {
        guard let listen = listens.removeValue(forKey: id) else { return "" }
        if listen.isAcknowledged { known[listen.name] = listen.selected }
        let query = listen.tag.map { ",\"q\":\(listen.query.reversed),\"t\":\($0)" } ?? ""
        return send(.unlisten, "n", "{\(Self.p(listen.path))\(query)}")
    }

    mutating func set(_ path: TreePath, _ value: JSONValue) -> String {
        write("p", "{\(Self.p(path)),\"d\":\(Self.text(value))}", [Entry(path: path, value: value)])
    }

    /// A transaction on what a default listen sees; empty when it has no value yet.
    mutating func transact(_ id: Int, _ value: JSONValue) -> String {
        guard let listen = listens[id], listen.isAcknowledged, listen.query.isDefault else { return "" }
        let hash = seen(by: listen).standInHash
        let body = "{\(Self.p(listen.path)),\"d\":\(Self.text(value)),\"h\":\"\(hash)\"}"
        return write("p", body, [Entry(path: listen.path, value: value)], hash: hash)
    }

    mutating func update(_ path: TreePath, _ members: [(name: String, value: JSONValue)]) throws -> String {
        write("m", Self.body(path, members), try Self.entries(path, members))
    }

    private mutating func write(_ action: String, _ body: String, _ entries: [Entry], hash: String? = nil) -> String {
        writes += 1
        return send(
            .write(Write(number: writes, action: action, body: body, hash: hash, entries: entries)), action, body)
    }

    private static func body(_ path: TreePath, _ members: [(name: String, value: JSONValue)]) -> String {
        let data = JSONObject(uniqueMembers: members.map { .init($0.name, $0.value) })
        return "{\(p(path)),\"d\":\(text(.object(data)))}"
    }

    private static func entries(_ path: TreePath, _ members: [(name: String, value: JSONValue)]) throws -> [Entry] {
        try members.map { Entry(path: try path.appending(TreePath($0.name)), value: $0.value) }
    }

    mutating func read(_ path: TreePath, _ query: SampleQuery) -> String {
        send(.read(path, query), "g", "{\(Self.p(path)),\"q\":\(query.text)}")
    }

    mutating func setOnDisconnect(_ path: TreePath, _ value: JSONValue) -> String {
        let entry = Entry(path: path, value: value)
        return send(.onDisconnect(action: "o", path, [entry]), "o", "{\(Self.p(path)),\"d\":\(Self.text(value))}")
    }

    mutating func updateOnDisconnect(_ path: TreePath, _ members: [(name: String, value: JSONValue)]) throws -> String {
        send(.onDisconnect(action: "om", path, try Self.entries(path, members)), "om", Self.body(path, members))
    }

    mutating func cancelOnDisconnect(_ path: TreePath) -> String {
        send(.onDisconnect(action: "oc", path, []), "oc", "{\(Self.p(path)),\"d\":null}")
    }

    mutating func authenticate() -> String { send(.authentication, "auth", #"{"cred":"token"}"#) }
    mutating func signOut() -> String { send(.authentication, "unauth", "{}") }
    mutating func noteStatistics() -> String { send(.noted, "s", #"{"c":{"sdk.js.12-18-0":1}}"#) }

    /// The client has a new connection: it listens again, with the hashes of what it has seen, and repeats its writes
    /// but for transactions, and its reads.
    mutating func reconnect() -> [String] {
        let interrupted = overtaken + requests
        (requests, overtaken, deferred, writes, transactions) = ([], [], DeferredModel(), 0, [:])
        var texts: [String] = []
        for id in listens.keys.sorted() {
            let hasSeen = listens[id]?.isAcknowledged == true
            listens[id]?.isAcknowledged = false
            texts.append(listenAgain(id, isHashed: hasSeen))
        }
        for (_, request) in interrupted {
            switch request {
            case .write(let write) where write.hash == nil:
                texts.append(self.write(write.action, write.body, write.entries))
            case .read(let path, let query): texts.append(read(path, query))
            default: break
            }
        }
        return texts
    }

    // MARK: What comes

    /// Takes a message; returns what it breaks.
    ///
    /// - Parameter truth: the tree of the service when it sent what the message comes from.
    mutating func take(_ text: [UInt8], _ truth: TreeNode) throws -> String? {
        guard !isOver else { return "something comes behind the end of the token" }
        guard let data = try JSONParser.parse(text)["d"] else { return "no message" }
        guard let body = data["b"] else { return nil }
        kinds.insert("\(data["a"]?.string ?? "response")\(body["t"] == .none ? "" : " of a query")")
        if let number = data["r"]?.integer { return try respond(Int(number), body, truth) }
        switch data["a"] {
        case "d":
            return try push(body, [(TreePath(body["p"]?.string ?? "no path"), body["d"] ?? "no data")])
        case "m":
            guard let members = body["d"]?.object?.members, let place = body["p"]?.string else {
                return "no merge: \(body)"
            }
            return try push(body, members.map { (try TreePath("\(place)/\($0.name)"), $0.value) })
        case "c": return try revoke(body)
        case "ac":
            isOver = true
            return nil
        default: return "an unknown push \(data)"
        }
    }

    private mutating func push(_ body: JSONValue, _ entries: [(path: TreePath, value: JSONValue)]) throws -> String? {
        pushes += 1
        let tag = body["t"]?.integer.map { Int($0) }
        for (path, value) in entries {
            let found = listens.first { $0.value.tag == tag && $0.value.path.isAtOrAbove(path) }
            guard let (id, listen) = found else { return "a push without a listen: \(body)" }
            let node = try TreeNode(json: value)
            if tag == nil {
                tree = tree.setting(node, at: path)
            } else if let relative = path.relative(to: listen.path) {
                listens[id]?.selected = listen.selected.setting(node, at: relative)
            }
        }
        return nil
    }

    private mutating func revoke(_ body: JSONValue) throws -> String? {
        let path = try TreePath(body["p"]?.string ?? "no path")
        var query: JSONValue = [:]
        if let list = body["q"] {
            guard let queries = list.array, queries.count == 1 else { return "q is no list: \(body)" }
            query = queries[0]
        }
        let found = try listens.first {
            try $0.value.path == path && JSONParser.parse(Array($0.value.query.text.utf8)) == query
        }
        guard let (id, listen) = found else { return "a revocation without a listen: \(body)" }
        guard listen.isAcknowledged else { return "a revocation before the response: \(body)" }
        listens[id] = nil
        return nil
    }

    private mutating func respond(_ number: Int, _ body: JSONValue, _ truth: TreeNode) throws -> String? {
        while let first = requests.first, first.number < number {
            overtaken.append(requests.removeFirst())
            // Requests that met the end of the token get no response; a read may wait for an index.
            if case .read(_, let query) = first.request, query.isByChild { continue }
            if !tokenHasEnded { return "the response of \(number) comes before that of \(first.number)" }
        }
        let request: Request
        if let first = requests.first, first.number == number {
            request = requests.removeFirst().request
        } else if let index = overtaken.firstIndex(where: { $0.number == number }) {
            request = overtaken.remove(at: index).request
        } else {
            return "a second response of \(number)"
        }
        if let broken = try check(request, body, truth) { return "\(number): \(broken)" }
        switch request {
        case .noted, .unlisten: return nil
        default: return difference(from: truth).map { "with the response of \(number): \($0)" }
        }
    }

    private mutating func check(_ request: Request, _ body: JSONValue, _ truth: TreeNode) throws -> String? {
        let isDone = body["s"] == "ok"
        kinds.insert("\(request.name) \(body["s"]?.string ?? "")\(body["d"]?["w"] == .none ? "" : " with a warning")")
        switch request {
        case .unlisten, .noted: return isDone ? nil : "is refused"
        case .authentication:
            let isExpired = tokenHasEnded && body["s"] == "expired_token"
            return isDone || isExpired || body["s"] == "permission_denied" ? nil : "is refused: \(body)"
        case .listen(let id):
            guard let listen = listens[id] else { return nil }
            guard isDone else {
                listens[id] = nil
                return nil
            }
            listens[id]?.isAcknowledged = true
            let isWarned = body["d"]?["w"] == ["no_index"]
            let hasIndex = !listen.query.isByChild || ServiceModel.hasIndex(listen.path)
            return isWarned == hasIndex ? "the warning is wrong" : nil
        case .read(let path, let query):
            let hasIndex = !query.isByChild || ServiceModel.hasIndex(path)
            guard isDone else { return hasIndex && body["s"] == "failure" ? "is refused: \(body)" : nil }
            guard hasIndex else { return "is read without an index" }
            let value = try TreeNode(json: body["d"] ?? "no data")
            return value == query.view(of: truth.node(at: path)) ? nil : "\(path) \(query.text) is read as \(value)"
        case .onDisconnect(let action, let path, let entries):
            guard isDone else { return nil }
            if action == "oc" { deferred.cancel(at: path) }
            for entry in entries { deferred.set(try TreeNode(json: entry.value), at: entry.path) }
            return nil
        case .write(let write):
            if body["s"] == "datastale" {
                let isEqual = write.entries.allSatisfy { truth.node(at: $0.path).standInHash == write.hash }
                return isEqual ? "is stale, and its listen has not seen why" : nil
            }
            guard isDone else { return nil }
            transactions[write.number] = write.hash
            return try missing(write, truth)
        }
    }

    /// What of a write is not there; only an existing node has a priority.
    private func missing(_ write: Write, _ truth: TreeNode) throws -> String? {
        for entry in write.entries {
            if entry.path.isPriority, truth.node(at: entry.path.node).isEmpty { continue }
            var node = try TreeNode(json: entry.value)
            // One that stands beside it.
            let priority = write.entries.first { $0.path.isPriority && $0.path.node == entry.path }
            if let priority { node = node.setting(try TreeNode(json: priority.value), at: priority.path) }
            guard truth.node(at: entry.path) != node else { continue }
            return "\(entry.path) is written as \(truth.node(at: entry.path))"
        }
        return nil
    }

    /// How a listen that has its response differs from what the service has sent.
    func difference(from truth: TreeNode) -> String? {
        for listen in listens.values where listen.isAcknowledged {
            let (seen, wanted) = (seen(by: listen), listen.view(of: truth))
            if seen != wanted { return "\(listen.name) shows \(seen.export), and not \(wanted.export)" }
        }
        return nil
    }
}

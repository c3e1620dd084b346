import HatoModel
import Testing

/// Checks a recorded history against the feed of the surviving store.
///
/// Every response carries a version, so the order in which the operations took effect is known, and nothing has to be
/// searched. Replayed in this order, every read must show the result of the writes before it, and every write must have
/// been possible. The order must also agree with time: an operation that was requested after the response of another
/// one comes after it. Then the history is linearizable. Operations without a response are in the feed, whole, or
/// nowhere.
struct HistoryCheck {
    /// Begins the message of each failure.
    let name: String
    let history: RecordedHistory
    /// The whole feed, read at the end.
    let feed: [SeenCommit]

    struct Summary {
        var operations = 0
        var reads = 0
        var written = 0
        var mismatches = 0
        var unanswered = 0
        var unansweredDone = 0
        var seen = 0
        var states = 0
        var losses = 0

        var text: String {
            "\(operations) operations in one history: \(written) writes acknowledged, \(unanswered) without a response "
                + "(\(unansweredDone) of them done), \(reads) reads, \(mismatches) refused on condition; "
                + "\(seen) commits and \(states) states seen by others; losses: \(losses)"
        }
    }

    private let byVersion: [UInt64: SeenCommit]

    init(_ name: String, _ history: RecordedHistory, feed: [SeenCommit]) {
        self.name = name
        self.history = history
        self.feed = feed
        byVersion = Dictionary(feed.map { ($0.version, $0) }, uniquingKeysWith: { first, _ in first })
    }

    func run() throws -> Summary {
        let operations = history.operations
        var summary = Summary(operations: operations.count)
        #expect(zip(feed, feed.dropFirst()).allSatisfy { $0.version < $1.version }, "\(name): versions rise")
        try checkWrites(operations, &summary)
        let known = checkOrder(operations)
        checkValues(operations, known)
        checkSeen(&summary)
        return summary
    }

    // MARK: Each write once, whole

    private func checkWrites(_ operations: [RecordedOperation], _ summary: inout Summary) throws {
        var owners: [Int: RecordedOperation] = [:]
        for operation in operations { owners[operation.id] = operation }
        var found: [Int: UInt64] = [:]
        for commit in feed {
            let ids = Set(commit.changes.values.map(Self.id))
            try #require(ids.count == 1, "\(name): commit \(commit.version) mixes writes")
            let id = try #require(ids.first ?? nil, "\(name): commit \(commit.version) has no operation")
            #expect(found.updateValue(commit.version, forKey: id) == nil, "\(name): write \(id) is there twice")
            let owner = try #require(owners[id], "\(name): write \(id) has no request")
            checkIsWhole(commit, owner)
        }
        for operation in operations {
            switch operation.outcome {
            case .written(let version, _):
                summary.written += 1
                if found[operation.id] != version { summary.losses += 1 }
                #expect(
                    found[operation.id] == version,
                    "\(name): the response of write \(operation.id) has version \(version)")
            case .unknown:
                summary.unanswered += 1
                if found[operation.id] != nil { summary.unansweredDone += 1 }
            case .mismatch:
                summary.mismatches += 1
                #expect(found[operation.id] == nil, "\(name): write \(operation.id) was refused and is there")
            case .read: summary.reads += 1
            }
        }
    }

    private func checkIsWhole(_ commit: SeenCommit, _ owner: RecordedOperation) {
        switch owner.request {
        case .read: Issue.record("\(name): a read wrote commit \(commit.version)")
        case .write(let changes, _):
            let wanted = Dictionary(changes.map { ($0.path, $0.value) }, uniquingKeysWith: { $1 })
            #expect(commit.changes == wanted, "\(name): write \(owner.id) is not whole")
        case .push(let path, let value):
            let place = commit.changes.keys.first
            #expect(commit.changes.count == 1 && place.flatMap { commit.changes[$0] } == value)
            #expect(place?.parent == path)
            if case .written(_, let key?) = owner.outcome {
                #expect(place?.keys.last?.text == key, "\(name): the response of push \(owner.id) has another key")
            }
        }
    }

    /// The operation that wrote a value.
    static func id(_ value: JSONValue) -> Int? {
        (value.number ?? value["id"]?.number).flatMap { Int(exactly: $0) }
    }

    // MARK: Time

    private func version(of operation: RecordedOperation) -> (version: UInt64, isWrite: Bool)? {
        switch operation.outcome {
        case .read(_, let version): (version, false)
        case .written(let version, _): (version, true)
        case .mismatch: nil
        case .unknown: unknownVersion(of: operation.id).map { ($0, true) }
        }
    }

    private func unknownVersion(of id: Int) -> UInt64? {
        feed.first { $0.changes.values.contains { Self.id($0) == id } }?.version
    }

    /// An operation that was requested after the response of another one comes after it. Returns for each operation the
    /// newest version that was known at its request.
    private func checkOrder(_ operations: [RecordedOperation]) -> [Int: UInt64] {
        var known: [Int: UInt64] = [:]
        let answers = operations.compactMap { operation -> (at: ContinuousClock.Instant, version: UInt64)? in
            if case .unknown = operation.outcome { return nil }
            return version(of: operation).map { (operation.answered, $0.version) }
        }.sorted { $0.at < $1.at }
        var (place, newest): (Int, UInt64) = (0, 0)
        for operation in operations.sorted(by: { $0.invoked < $1.invoked }) {
            while place < answers.count, answers[place].at < operation.invoked {
                newest = max(newest, answers[place].version)
                place += 1
            }
            known[operation.id] = newest
            guard let (version, isWrite) = version(of: operation) else { continue }
            #expect(
                isWrite ? version > newest : version >= newest,
                "\(name): operation \(operation.id) took effect at \(version), but \(newest) was known before it")
        }
        return known
    }

    // MARK: Values

    private func checkValues(_ operations: [RecordedOperation], _ known: [Int: UInt64]) {
        let replay = Replay(feed)
        for operation in operations {
            switch (operation.request, operation.outcome) {
            case (.read(let path), .read(let value, let version)):
                let expected = replay.value(at: path, version)
                #expect(value == expected, "\(name): read \(operation.id) at version \(version)")
            case (.write(let changes, let expecting?), .written(let version, _)):
                let before = replay.value(at: changes[0].path, version - 1)
                #expect(before == expecting, "\(name): write \(operation.id) replaced an unexpected value")
            case (.write(let changes, let expecting?), .mismatch(let value)):
                #expect(value != expecting)
                let isPossible = replay.values(of: changes[0].path, from: known[operation.id] ?? 0).contains(value)
                #expect(isPossible, "\(name): write \(operation.id) was refused for a value that was not there")
            default: break
            }
        }
    }

    // MARK: Events of other clients

    private func checkSeen(_ summary: inout Summary) {
        let seen = history.commits
        summary.seen = seen.count
        for commit in seen where byVersion[commit.version] != commit {
            summary.losses += 1
            Issue.record("\(name): a follower saw commit \(commit.version), which is not in the feed")
        }
        #expect(seen.map(\.version) == feed.map(\.version), "\(name): the follower saw all commits, in order, once")
        let replay = Replay(feed)
        summary.states = history.states.count
        for state in history.states {
            let expected = replay.node(at: Replay.listened, state.version)
            if state.node != expected { summary.losses += 1 }
            #expect(state.node == expected, "\(name): a listener had another state at version \(state.version)")
        }
    }
}

/// The tree at every version of a feed.
struct Replay {
    /// The paths that listeners listen to.
    static let listened = RandomLoad.keys

    private var history: [TreePath: [(version: UInt64, value: JSONValue)]] = [:]

    init(_ feed: [SeenCommit]) {
        for commit in feed {
            for (path, value) in commit.changes { history[path, default: []].append((commit.version, value)) }
        }
    }

    func value(at path: TreePath, _ version: UInt64) -> JSONValue {
        guard let values = history[path], let place = Self.place(version, in: values) else { return .null }
        return values[place].value
    }

    /// The value at a version, and all later ones.
    func values(of path: TreePath, from version: UInt64) -> [JSONValue] {
        guard let values = history[path] else { return [.null] }
        guard let place = Self.place(version, in: values) else { return [.null] + values.map(\.value) }
        return values[place...].map(\.value)
    }

    /// The last value that was written up to a version.
    private static func place(_ version: UInt64, in values: [(version: UInt64, value: JSONValue)]) -> Int? {
        var (low, high) = (0, values.count)
        while low < high {
            let middle = (low + high) / 2
            if values[middle].version <= version { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : low - 1
    }

    func node(at path: TreePath, _ version: UInt64) -> TreeNode {
        var node = TreeNode.empty
        for child in history.keys where child.parent == path {
            guard let value = try? TreeNode(json: value(at: child, version)), let key = child.keys.last else {
                continue
            }
            node = node.setting(value, at: TreePath(uncheckedKeys: [key]))
        }
        return node
    }
}

import HatoModel
import HatoRPC
import HatoTesting

/// Clients that read, write, append and replace under a condition, on few paths, until the connection ends. Some writes
/// are so large that they are prepared before their turn.
struct RandomLoad {
    static let keys = path("k")
    static let places = path("m")
    static let pushes = path("log")
    private static let keyCount = 4

    let history: RecordedHistory
    let seed: UInt64
    /// More than the count of any failpoint.
    var operationsMax = 5_000
    /// The service may respond with an internal error before it ends, as it does when it cannot read.
    var meetsErrors = false

    static func path(_ names: String...) -> TreePath {
        do { return try TreePath("/" + names.joined(separator: "/")) } catch { preconditionFailure("\(error)") }
    }

    /// Returns when the service is gone. `workers` clients send one request after the other, one sends many at once.
    func run(_ client: @escaping @Sendable () -> RPCClient, workers: Int = 5) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<workers {
                group.addTask {
                    let worker = Worker(history, client(), SeededRandom(seed: seed &+ UInt64(worker)))
                    worker.meetsErrors = meetsErrors
                    try await worker.run(operationsMax)
                }
            }
            group.addTask { try await pipeline(client()) }
            try await group.waitForAll()
        }
    }

    /// One more push, which must be acknowledged; returns its version.
    func pushOnce(_ client: RPCClient) async throws -> UInt64 {
        let id = history.nextID()
        let isGone = try await Worker(history, client, SeededRandom(seed: 0)).push(id)
        let own = history.operations.last { $0.id == id }
        guard !isGone, case .written(let version, _)? = own?.outcome else {
            throw DeadlineExceeded("a push has a response")
        }
        return version
    }

    /// Sixteen pushes at a time on one connection: groups of several commits.
    private func pipeline(_ client: RPCClient) async throws {
        for _ in 0..<operationsMax / 16 {
            let isGone = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<16 {
                    let id = history.nextID()
                    group.addTask {
                        let worker = Worker(history, client, SeededRandom(seed: 0))
                        worker.meetsErrors = meetsErrors
                        return try await worker.push(id)
                    }
                }
                return try await group.reduce(false) { $0 || $1 }
            }
            if isGone { return await client.close() }
        }
        throw DeadlineExceeded("the service is killed at its failpoint")
    }
}

/// A client of a load, and its knowledge of the tree.
private final class Worker {
    private let history: RecordedHistory
    private let client: RPCClient
    private var random: SeededRandom
    var meetsErrors = false
    /// The last known value of a key.
    private var known: [TreePath: (etag: String, value: JSONValue)] = [:]

    init(_ history: RecordedHistory, _ client: RPCClient, _ random: SeededRandom) {
        self.history = history
        self.client = client
        self.random = random
    }

    func run(_ operationsMax: Int) async throws {
        for _ in 0..<operationsMax {
            let id = history.nextID()
            let isGone =
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<19: try await read(id, anyKey())
                case 19: try await read(id, anyLargePlace())
                case 20..<38: try await set(id)
                case 38..<40: try await setLarge(id)
                case 40..<70: try await replace(id)
                case 70..<80: try await update(id)
                default: try await push(id)
                }
            if isGone { return await client.close() }
        }
        throw DeadlineExceeded("the service is killed at its failpoint")
    }

    private func anyKey() -> TreePath {
        RandomLoad.path("k", "k\(Int.random(in: 0..<4, using: &random))")
    }

    private func anyLargePlace() -> TreePath {
        RandomLoad.path("large", "l\(Int.random(in: 0..<2, using: &random))")
    }

    // MARK: Requests; each returns whether the service is gone

    private func read(_ id: Int, _ path: TreePath) async throws -> Bool {
        return try await ask(id, .read(path), "messages.get", ["path": .string(path.text), "etag": true]) { result in
            let value = result["value"] ?? .null
            self.known[path] = (result["etag"]?.string ?? "", value)
            return .read(value, version: Self.version(result))
        }
    }

    private func set(_ id: Int) async throws -> Bool {
        let (path, value) = (anyKey(), JSONValue.number(Double(id)))
        return try await ask(
            id, .write([(path, value)]), "messages.set", ["path": .string(path.text), "value": value], Self.written)
    }

    /// Replaces the node and keeps nothing of it: mostly more nodes than the writer prepares in its turn, sometimes
    /// few.
    private func setLarge(_ id: Int) async throws -> Bool {
        let path = anyLargePlace()
        let count =
            switch Int.random(in: 0..<6, using: &random) {
            case 0: 3
            // Planned before its turn.
            case 1: Int.random(in: 2_001...2_400, using: &random)
            // So many rows are prepared in a file.
            default: Int.random(in: 8_200...8_500, using: &random)
            }
        var object: JSONObject = ["id": .number(Double(id))]
        for number in 0..<count { object.append("n\(10_000 + number)", .number(Double(id))) }
        let value = JSONValue.object(object)
        return try await ask(
            id, .write([(path, value)]), "messages.set", ["path": .string(path.text), "value": value], Self.written)
    }

    private func replace(_ id: Int) async throws -> Bool {
        let (path, value) = (anyKey(), JSONValue.number(Double(id)))
        guard let known = known[path] else { return try await read(id, path) }
        return try await ask(
            id, .write([(path, value)], expecting: known.value), "messages.set",
            ["path": .string(path.text), "value": value, "ifMatch": .string(known.etag)]
        ) { result in
            self.known[path] = (result["etag"]?.string ?? "", value)
            return Self.written(result)
        } refused: { error in
            let value = error.data["value"] ?? .null
            self.known[path] = (error.data["etag"]?.string ?? "", value)
            return .mismatch(value)
        }
    }

    private func update(_ id: Int) async throws -> Bool {
        let names = ["a", "b", "c"].shuffled(using: &random).prefix(Int.random(in: 2...3, using: &random))
        let value = JSONValue.number(Double(id))
        let values = JSONObject(uniqueMembers: names.map { JSONObject.Member($0, value) })
        return try await ask(
            id, .write(names.map { (RandomLoad.path("m", $0), value) }), "messages.update",
            ["path": .string(RandomLoad.places.text), "values": .object(values)], Self.written)
    }

    func push(_ id: Int) async throws -> Bool {
        // Sometimes so much that the log is soon prepared.
        let count = id % 10 == 0 ? 1_000 + id % 1_000 : id % 40
        let value: JSONValue = ["id": .number(Double(id)), "text": .string(String(repeating: "鳩", count: count))]
        return try await ask(
            id, .push(RandomLoad.pushes, value), "messages.push",
            ["path": .string(RandomLoad.pushes.text), "value": value]
        ) { .written(version: Self.version($0), key: $0["key"]?.string) }
    }

    // MARK: Requests

    private static func version(_ result: JSONValue) -> UInt64 { UInt64(result["version"]?.number ?? 0) }
    private static func written(_ result: JSONValue) -> RecordedOperation.Outcome { .written(version: version(result)) }

    private func ask(
        _ id: Int, _ request: RecordedOperation.Request, _ method: String, _ params: JSONObject,
        _ answered: (JSONValue) -> RecordedOperation.Outcome,
        refused: (RPCError) -> RecordedOperation.Outcome? = { _ in nil }
    ) async throws -> Bool {
        let invoked = ContinuousClock.now
        var operation = RecordedOperation(
            id: id, request: request, invoked: invoked, answered: invoked, outcome: .unknown)
        do {
            operation.outcome = answered(try await client.call(method: method, params: params))
        } catch let error as RPCError where error.code == .unavailable {
            operation.answered = ContinuousClock.now
            history.add(operation)
            return true
        } catch let error as RPCError where meetsErrors && error.code == .internalError {
            // It may have been done.
        } catch let error as RPCError {
            guard let outcome = refused(error) else { throw error }
            operation.outcome = outcome
        }
        operation.answered = ContinuousClock.now
        history.add(operation)
        return false
    }
}

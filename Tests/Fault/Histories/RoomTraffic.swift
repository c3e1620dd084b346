import HatoModel
import HatoRPC
import HatoTesting

/// Writers that change rooms without pause, and readers that send random queries on them.
struct RoomTraffic {
    static let rooms = 20
    static let messages = FaultSettings.queries >= 10_000 ? 100 : 30

    let history: QueryHistory
    let client: @Sendable () -> RPCClient
    let seed: UInt64

    /// How a part of the traffic ended.
    enum End { case isOver, serviceIsGone }

    /// Fills every room.
    func fill() async throws {
        var random = SeededRandom(seed: seed)
        let client = client()
        for room in 0..<Self.rooms {
            let members = (0..<Self.messages).map {
                JSONObject.Member("m\($0)", QueryHistory.message(using: &random))
            }
            _ = try await client.call(
                method: "messages.set",
                params: ["path": .string("/c/r\(room)"), "value": .object(JSONObject(uniqueMembers: members))])
        }
        await client.close()
    }

    /// Writes and queries until `isOver`, and at least `queries` times, or until the service is gone.
    func run(queries: Int, until isOver: @escaping @Sendable () async throws -> Bool = { true }) async throws -> End {
        let wanted = history.queryCount + queries
        let halt = Halt()
        return try await withThrowingTaskGroup(of: End.self) { group in
            for writer in 0..<2 {
                group.addTask { try await write(SeededRandom(seed: seed &+ UInt64(writer)), until: halt) }
            }
            for reader in 0..<3 {
                group.addTask {
                    let end = try await read(SeededRandom(seed: seed &+ 10 &+ UInt64(reader)), halt) {
                        // One of them decides, and asks each time, because its caller may watch something.
                        guard reader == 0 else { return false }
                        let isOver = try await isOver()
                        return isOver && history.queryCount >= wanted
                    }
                    await halt.stop()
                    return end
                }
            }
            var end = End.isOver
            for try await part in group where part == .serviceIsGone { end = part }
            return end
        }
    }

    private actor Halt {
        var isOver = false
        func stop() { isOver = true }
    }

    /// Eight writes at a time.
    private func write(_ random: SeededRandom, until halt: Halt) async throws -> End {
        var random = random
        let client = client()
        while await !halt.isOver {
            let writes = (0..<8).map { _ in (history.nextID(), change(using: &random)) }
            let isGone = try await withThrowingTaskGroup(of: Bool.self) { group in
                for (id, change) in writes { group.addTask { try await write(id, change, client) } }
                return try await group.reduce(false) { $0 || $1 }
            }
            if isGone { break }
        }
        await client.close()
        return await halt.isOver ? .isOver : .serviceIsGone
    }

    /// Each write contains its number, so that the feed shows which ones were done.
    private func write(_ id: Int, _ change: JSONObject, _ client: RPCClient) async throws -> Bool {
        var values = change
        values["mark/w\(id % 16)"] = .number(Double(id))
        do {
            let result = try await client.call(
                method: "messages.update", params: ["path": "/", "values": .object(values)])
            history.wrote(id, at: UInt64(result["version"]?.number ?? 0))
            return false
        } catch let error as RPCError where error.code == .unavailable {
            return true
        }
    }

    private func change(using random: inout SeededRandom) -> JSONObject {
        let room = "c/r\(Int.random(in: 0..<Self.rooms, using: &random))"
        let message = "\(room)/m\(Int.random(in: 0..<Self.messages, using: &random))"
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<6: return ["\(message)": QueryHistory.message(using: &random)]
        case 6..<10: return ["\(message)/date": QueryHistory.date(using: &random)]
        case 10..<12: return ["\(message)/author/name": .string(random.pick(["マスオ", "🕊"]))]
        case 12..<14: return ["\(message)": .null]
        case 14: return ["\(message)/date": .null]
        case 15: return ["\(message)/kept": .number(Double(Int.random(in: 0...9, using: &random)))]
        case 16: return ["\(message)/author": .null]
        case 17: return ["\(message)": .number(Double(Int.random(in: 0...9, using: &random)))]
        default:
            let other = "c/r\(Int.random(in: 0..<Self.rooms, using: &random))/x\(Int.random(in: 0..<9, using: &random))"
            return [
                "\(message)/date": QueryHistory.date(using: &random), "\(other)": QueryHistory.message(using: &random),
            ]
        }
    }

    // MARK: Queries

    private func read(
        _ random: SeededRandom, _ halt: Halt, until isOver: () async throws -> Bool
    ) async throws -> End {
        var random = random
        let client = client()
        do throws(any Error) {
            while true {
                let path = RandomLoad.path("c", "r\(Int.random(in: 0..<Self.rooms, using: &random))")
                try await ask(client, path, QueryHistory.query(using: &random))
                if await halt.isOver { break }
                if try await isOver() { break }
            }
        } catch let error as RPCError where error.code == .unavailable {
            await client.close()
            return .serviceIsGone
        }
        await client.close()
        return .isOver
    }

    /// A listener gets a result too while no index can answer the query.
    private func ask(_ client: RPCClient, _ path: TreePath, _ query: TreeQuery) async throws {
        do {
            let result = try await client.call(Messages.Get(path: path, query: query, form: .export))
            history.add(
                SeenQuery(
                    version: result.version, path: path, query: query, keys: result.keys,
                    node: try TreeNode(json: result.value)))
        } catch let error as RPCError where error.code == .failedPrecondition {
            history.refusedQuery()
            let listener = try await client.subscribe(Messages.Listen(path: path, query: query))
            defer { withExtendedLifetime(listener) {} }
            for try await event in listener {
                let notification = try Messages.Event.decode(event.params)
                guard let first = notification.events.first else { continue }
                history.add(
                    SeenQuery(
                        version: notification.version, path: path, query: query, keys: nil,
                        node: try TreeNode(json: first.data)))
                break
            }
            listener.cancel()
        }
    }

    /// Whether all indexes are ready.
    func areIndexesBuilt(_ client: RPCClient) async throws -> Bool {
        try await client.call(Messages.Indexes.List()).allSatisfy { $0.state == .ready }
    }
}

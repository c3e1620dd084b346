import HatoModel
import HatoTesting
import Synchronization

/// A query and its result.
struct SeenQuery: Sendable {
    var version: UInt64
    var path: TreePath
    var query: TreeQuery
    /// In query order; nil if only the set of children is known.
    var keys: [String]?
    /// The selected children.
    var node: TreeNode
}

/// The queries and writes of indexed rooms, over all runs of the service.
final class QueryHistory: Sendable {
    private struct State {
        var lastID = 0
        var queries: [SeenQuery] = []
        var answeredWrites: [Int: UInt64] = [:]
        var refusedQueries = 0
    }

    private let state = Mutex(State())

    func nextID() -> Int {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    func add(_ query: SeenQuery) { state.withLock { $0.queries.append(query) } }
    func wrote(_ id: Int, at version: UInt64) { state.withLock { $0.answeredWrites[id] = version } }
    func refusedQuery() { state.withLock { $0.refusedQueries += 1 } }

    var queries: [SeenQuery] { state.withLock { $0.queries } }
    var answeredWrites: [Int: UInt64] { state.withLock { $0.answeredWrites } }
    /// Queries that no built index could answer.
    var refusedQueries: Int { state.withLock { $0.refusedQueries } }
    var queryCount: Int { state.withLock { $0.queries.count } }
}

extension QueryHistory {
    /// A child of a room, with or without the indexed children.
    static func message(using random: inout SeededRandom) -> JSONValue {
        if random.chance(1, in: 8) { return random.pick([true, 3, "鳩", "text"]) }
        var message: JSONObject = ["text": .string(random.pick(["ただいま", "おかえり", ""]))]
        if random.chance(5, in: 6) { message["date"] = date(using: &random) }
        if random.chance(1, in: 2) { message["author"] = ["name": .string(random.pick(["マスオ", "カツオ", "🕊"]))] }
        if random.chance(1, in: 2) { message["kept"] = .number(Double(Int.random(in: 0...9, using: &random))) }
        if random.chance(1, in: 6) { message[".priority"] = .number(Double(Int.random(in: 0...3, using: &random))) }
        return .object(message)
    }

    static func date(using random: inout SeededRandom) -> JSONValue {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: .string(random.pick(["a", "b", String(repeating: "長", count: 300)]))
        case 1: .bool(Bool.random(using: &random))
        case 2: ["nested": 1]
        default: .number(Double(Int.random(in: -50...50, using: &random)) / 2)
        }
    }

    static func query(using random: inout SeededRandom) throws -> TreeQuery {
        let order = random.pick(["date", "date", "date", "author/name", "$value", "$key", "$priority", "kept"])
        var json: JSONObject = ["orderBy": .string(order)]
        switch order {
        case "date", "$value", "$priority", "kept":
            if random.chance(1, in: 8) {
                json["equalTo"] = .number(Double(Int.random(in: -4...4, using: &random)))
                break
            }
            if random.chance(1, in: 3) {
                json[random.pick(["startAt", "startAfter"])] = .number(Double(Int.random(in: -50...9, using: &random)))
            }
            if random.chance(1, in: 3) {
                json[random.pick(["endAt", "endBefore"])] =
                    random.chance(1, in: 4)
                    ? .string("b") : .number(Double(Int.random(in: 0...25, using: &random)))
            }
        case "author/name":
            if random.chance(1, in: 2) { json["equalTo"] = .string(random.pick(["マスオ", "🕊"])) }
        default:
            if random.chance(1, in: 2) { json["startAt"] = .string("m\(Int.random(in: 0...99, using: &random))") }
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0: break
        case 1: json["limitToFirst"] = .number(Double(Int.random(in: 1...10, using: &random)))
        default: json["limitToLast"] = .number(Double(Int.random(in: 1...10, using: &random)))
        }
        return try TreeQuery(.object(json))
    }
}

extension SeededRandom {
    mutating func chance(_ one: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &self) < one }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &self)]
    }
}

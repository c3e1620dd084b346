import Foundation
import HatoModel
import HatoRPC

/// The params of frequent methods, decoded from JSON and encoded again: by their tables of fields, and in turn with
/// `Codable` types of the same members. Rows give requests per second of one thread.
struct FieldBench: Sendable {
    /// The least that every method reaches.
    private static let goal = Goal(.ratio, .atLeast(5))
    private static let messages = ChatRequests.pushes.map(\.bytes)

    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let settings = settings
        let rows = try await Blocking.run {
            let query: JSONValue = ["orderBy": "date", "limitToLast": 50]
            let reads = Self.params { ["path": .string("/chats/c\($0)/messages"), "query": query] }
            let sets = Self.params { number in
                [
                    "path": .string("/chats/c\(number)/messages/m"), "value": ChatRequests.message(number),
                    "ifVersion": .number(Double(number)),
                ]
            }
            let listens = Self.params { number in
                [
                    "path": .string("/chats/c\(number)/messages"), "query": query, "since": .number(Double(number)),
                    "epoch": "b7c1f2d3a4958697",
                ]
            }
            return [
                try Self.row(Messages.Push.self, CodableParams.Push.self, Self.messages, settings),
                try Self.row(Messages.Set.self, CodableParams.Set.self, sets, settings),
                try Self.row(Messages.Get.self, CodableParams.Get.self, reads, settings),
                try Self.row(Messages.Listen.self, CodableParams.Listen.self, listens, settings),
            ]
        }
        for row in rows { table.add(row) }
    }

    private static func params(_ make: (Int) -> JSONObject) -> [[UInt8]] {
        (0..<256).map { JSONValue.object(make($0)).encoded }
    }

    private static func row<Request: RPCRequest, Coded: Codable>(
        _ request: Request.Type, _ coded: Coded.Type, _ params: [[UInt8]], _ settings: BenchSettings
    ) throws -> Table.Row {
        let (decoder, encoder) = (JSONDecoder(), JSONEncoder())
        encoder.outputFormatting = .withoutEscapingSlashes
        let data = params.map { Data($0) }
        var (own, other): ([Double], [Double]) = ([], [])
        for _ in 0..<settings.windows {
            own.append(
                try perSecond(settings.seconds / 2) { number in
                    let json = try JSONParser.parse(params[number % params.count])
                    let request = try Request.decode(json.object ?? [:])
                    var writer = JSONWriter()
                    request.write(into: &writer)
                    return writer.bytes.count
                })
            other.append(
                try perSecond(settings.seconds / 2) { number in
                    try encoder.encode(decoder.decode(coded, from: data[number % data.count])).count
                })
        }
        return Table.Row(
            what: "wire: fields of \(Request.method), decoded and encoded", value: own.median, unit: "/s",
            ratio: (own.ratio(to: other), "Codable"), goals: [goal])
    }

    /// - Parameter body: does the work once and returns the bytes of its result.
    private static func perSecond(_ seconds: Double, _ body: (Int) throws -> Int) throws -> Double {
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        var (now, count) = (start, 0)
        while now < end {
            for _ in 0..<64 {
                guard try body(count) > 0 else { throw BenchError("nothing was encoded") }
                count += 1
            }
            now = Clock.now()
        }
        return Double(count) / (Double(now - start) / 1e9)
    }
}

/// The same params as types that the compiler codes, for comparison only.
private enum CodableParams {
    struct Push: Codable {
        var database: String?
        var path: String
        var value: CodableJSON
        var key: String?
    }

    struct Set: Codable {
        var database: String?
        var path: String
        var value: CodableJSON
        var ifMatch: String?
        var ifVersion: UInt64?
    }

    struct Query: Codable {
        var orderBy: String?
        var equalTo: CodableJSON?
        var startAt: CodableJSON?
        var startAfter: CodableJSON?
        var endAt: CodableJSON?
        var endBefore: CodableJSON?
        var limitToFirst: Int?
        var limitToLast: Int?
    }

    struct Get: Codable {
        var database: String?
        var path: String
        var query: Query?
        var shallow: Bool?
        var export: Bool?
        var etag: Bool?
    }

    struct Listen: Codable {
        var database: String?
        var path: String
        var query: Query?
        var since: UInt64?
        var epoch: String?
        var etag: String?
        var coalesceMs: Int?
    }
}

/// Any JSON, tried in the order of how frequent the kinds are in messages.
private enum CodableJSON: Codable {
    case string(String)
    case number(Double)
    case object([String: CodableJSON])
    case bool(Bool)
    case array([CodableJSON])
    case null

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([String: CodableJSON].self) {
            self = .object(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if container.decodeNil() {
            self = .null
        } else {
            self = .array(try container.decode([CodableJSON].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .string(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        case .bool(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .null: try container.encodeNil()
        }
    }
}

import HatoMessages
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Wrong input: lines with flipped bytes, requests with foreign values, noise. Each gets a response or its connection
/// is closed, nothing ends the service, and nothing is done in part: the seed is in every message.
@Suite(.timeLimit(.minutes(5)))
struct NonsenseTests {
    private static let seeds: [UInt64] = {
        let first = SeededRandom.seed(of: "nonsense")
        return (0..<3).map { first &+ $0 }
    }()

    @Test(arguments: seeds)
    func requestsWithForeignValuesGetResponses(seed: UInt64) async throws {
        var nonsense = Nonsense(seed: seed)
        try await RunningMessages.with { running in
            let talk = try await Talk(running, seed)
            for _ in 0..<700 { try await talk.say(nonsense.request()) }
            try await talk.expectAlive()
        }
    }

    @Test(arguments: seeds)
    func damagedLinesGetResponses(seed: UInt64) async throws {
        var nonsense = Nonsense(seed: seed)
        try await RunningMessages.with { running in
            let talk = try await Talk(running, seed)
            for _ in 0..<700 { try await talk.say(nonsense.damagedLine()) }
            try await talk.expectAlive()
        }
    }

    @Test(arguments: seeds)
    func noiseGetsAResponseOrClosesTheConnection(seed: UInt64) async throws {
        var nonsense = Nonsense(seed: seed)
        try await RunningMessages.with { running in
            for _ in 0..<60 {
                let line = try await RawLines.connect(running)
                try? line.send(bytes: nonsense.noise() + Array("\n".utf8))
                do {
                    try await line.send(Talk.question(of: "last"))
                    while try await line.next()["id"] != "last" {}
                } catch is EndOfEvents {
                    continue
                }
            }
            try await Talk(running, seed).expectAlive()
        }
    }
}

/// One connection that sends a right request after each wrong one, to find the response of the wrong one.
private final class Talk {
    private let running: RunningMessages
    private let seed: UInt64
    private var line: RawLines
    private var count = 0

    init(_ running: RunningMessages, _ seed: UInt64) async throws {
        self.running = running
        self.seed = seed
        line = try await RawLines.connect(running)
    }

    static func question(of id: String) -> String {
        #"{"jsonrpc":"2.0","id":"\#(id)","method":"messages.stats","params":{"auth":"admin"}}"#
    }

    /// The responses that come to `bytes`, which are one line.
    func say(_ bytes: [UInt8]) async throws {
        count += 1
        let id = "after-\(count)"
        do {
            try line.send(bytes: bytes + Array("\n".utf8))
            try await line.send(Self.question(of: id))
            var answers: [JSONValue] = []
            while true {
                let answer = try await line.next()
                if answer["id"]?.string == id { break }
                // Events of listeners that nonsense has opened, and late responses of slow methods, come too.
                if answer["method"] == nil { answers.append(answer) }
            }
            expect(answers, to: bytes)
        } catch is EndOfEvents {
            line = try await RawLines.connect(running)
        }
    }

    private func expect(_ answers: [JSONValue], to bytes: [UInt8]) {
        let text = "seed \(seed), line \(count): \(String(decoding: bytes, as: UTF8.self).prefix(500))"
        for answer in answers {
            for entry in answer.array ?? [answer] {
                #expect(entry["result"] != nil || entry["error"]?["message"]?.string?.isEmpty == false, "\(text)")
                #expect(entry["error"]?["code"]?.number != -32603, "\(text)")
            }
        }
        guard let value = try? JSONParser.parse(bytes) else {
            if !bytes.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) {
                #expect(answers.contains { $0["error"]?["code"] == -32700 }, "\(text)")
            }
            return
        }
        guard let id = value["id"], id.string != nil || id.number != nil else { return }
        let slow = ["messages.export", "messages.import", "messages.backup", "messages.verify"]
        let isSlow = slow.contains(value["method"]?.string ?? "")
        if !isSlow { #expect(answers.contains { $0["id"] == id || $0["id"] == .null }, "\(text)") }
    }

    func expectAlive() async throws {
        let client = running.administrator
        var create = Messages.Databases.Create(database: DatabaseName.default)
        create.rules = DefaultRules.signedIn
        // Nonsense may have dropped it.
        _ = await refusal { try await client.call(create) }
        let version = try await client.call(Messages.Set(path: "/alive", value: 1)).version
        #expect(try await client.call(Messages.Get(path: "/alive")).version >= version, "seed \(seed)")
    }
}

/// Makes nonsense out of what the methods show as their examples.
private struct Nonsense {
    private var random: SeededRandom

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    private static let values: [JSONValue] = [
        nil, true, false, 0, -1, 1.5, 1e300, 9_007_199_254_740_993, "", "/", "a", ".priority", "/a/.priority", "/a.b",
        "\u{0}", "😀", "[MIN_NAME]", "null_etag", "default", "none", [], [nil], [[1]], [:], [".value": 1],
        [".sv": "timestamp"], [".sv": ["increment": 1e308]], [".priority": 5], ["a": ["b": [".value": [:]]]],
        ["orderBy": "$key", "limitToFirst": 0], ["orderBy": "a/b", "startAt": ["value": nil, "key": ""]],
        .string(String(repeating: "x", count: 5_000)), .string(String(repeating: "/a", count: 40)),
        .array(Array(repeating: 1, count: 500)),
    ]

    private mutating func example() -> (method: String, params: JSONObject) {
        func params<Request: RPCRequest>(_: Request.Type) -> JSONObject {
            Request.example.request.members
        }
        let request = Messages.methods[Int.random(in: 0..<Messages.methods.count, using: &random)]
        var members = params(request)
        members["auth"] = "admin"
        return (request.method, members)
    }

    /// A request in which some parameters have foreign values, foreign names, or are gone.
    mutating func request() -> [UInt8] {
        var (method, params) = example()
        for _ in 0...Int.random(in: 0...2, using: &random) {
            let names = params.members.map(\.name).filter { $0 != "auth" }
            let name = names.randomElement(using: &random) ?? "path"
            switch Int.random(in: 0..<10, using: &random) {
            case 0: params[name] = nil
            case 1: params[name + "s"] = params[name]
            case 2:
                let other = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
                params[other] = Self.values.randomElement(using: &random)
            case 3: params[name] = [name: params[name] ?? .null]
            default: params[name] = Self.values.randomElement(using: &random)
            }
        }
        if Int.random(in: 0..<20, using: &random) == 0 { params["as"] = Self.values.randomElement(using: &random) }
        return line(method, .object(params))
    }

    private static let names = [
        "database", "path", "value", "values", "query", "key", "ifMatch", "ifVersion", "since", "epoch", "etag",
        "coalesceMs", "after", "patterns", "rules", "dryRun", "snapshot", "limit", "rows", "subscription", "operation",
    ]

    private mutating func line(_ method: String, _ params: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        let id = Double(UInt16.random(in: .min ... .max, using: &random))
        writer.write(["jsonrpc": "2.0", "id": .number(id), "method": .string(method), "params": params] as JSONValue)
        return writer.bytes
    }

    /// A right request with some bytes flipped, taken out, doubled, or with another line in the middle of it.
    mutating func damagedLine() -> [UInt8] {
        let (method, params) = example()
        var bytes = line(method, .object(params))
        for _ in 0...Int.random(in: 0...3, using: &random) {
            let at = Int.random(in: 0..<bytes.count, using: &random)
            let end = min(bytes.count, at + Int.random(in: 1...8, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes[at] = UInt8.random(in: .min ... .max, using: &random)
            case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes.removeSubrange(at..<max(end, at + 1))
            case 3: bytes.insert(contentsOf: bytes[at..<end], at: at)
            case 4: bytes.insert(contentsOf: Self.tokens.randomElement(using: &random)?.utf8 ?? "".utf8, at: at)
            default: bytes.removeSubrange(at...)
            }
            if bytes.isEmpty { bytes = [0x7B] }
        }
        // One line it stays.
        return bytes.map { $0 == 0x0A ? 0x20 : $0 }
    }

    private static let tokens = [
        "{", "}", "[", "]", "\"", ":", ",", "null", "-", "1e999", "\\u", "\\ud800", "\u{0}", "//",
    ]

    mutating func noise() -> [UInt8] {
        let count = Int.random(in: 0...4_096, using: &random)
        let isText = Bool.random(using: &random)
        return (0..<count).map { _ in
            isText
                ? Self.characters.randomElement(using: &random) ?? 0x20
                : UInt8.random(in: .min ... .max, using: &random)
        }
    }

    private static let characters = Array("{}[]\",:0123456789.eE+-truefalsn \\/\n".utf8)
}

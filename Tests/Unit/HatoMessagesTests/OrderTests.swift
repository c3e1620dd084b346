import Foundation
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoMessages

/// Requests that one connection sends without waiting get the responses of requests sent one by one (protocol §1).
@Suite struct OrderTests {
    @Test func readBetweenTwoWritesSeesTheFirstOnly() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let lines = try await PipelinedLines.connect(running)
            let hold = try await WriterHold(running.store)
            try await lines.send([
                Call("messages.set", ["path": "/mine/a", "value": ["n": 1]]),
                Call("messages.get", ["path": "/mine/a/n"]),
                Call("messages.get", ["path": "/mine", "query": ["orderBy": "n", "limitToLast": 1]]),
                Call("messages.get", ["path": "/mine", "shallow": true]),
                Call("messages.export", ["path": "/mine"]),
                Call("messages.remove", ["path": "/mine"]),
                Call("messages.get", ["path": "/mine"]),
                Call("messages.set", ["path": "/mine/a", "value": 3]),
            ])
            try await hold.release(after: 3)
            let answers = try await lines.responses(8)
            #expect(answers[1]["value"] == 1)
            #expect(answers[1]["version"] == answers[0]["version"])
            #expect(answers[2]["value"] == ["a": ["n": 1]])
            #expect(answers[3]["value"] == ["a": true])
            #expect(answers[4]["rows"] == [["/a/n", 1]])
            #expect(answers[6]["value"] == .null)
            #expect(answers[6]["version"] == answers[5]["version"])
            lines.close()
        }
    }

    @Test func readWithNothingBeforeItSeesNothingBehindIt() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let lines = try await PipelinedLines.connect(running)
            for number in 0..<50 {
                try await lines.send([
                    Call("messages.get", ["path": .string("/k\(number)")]),
                    Call("messages.set", ["path": .string("/k\(number)"), "value": 1]),
                ])
                #expect(try await lines.responses(2)[0]["value"] == .null)
            }
            lines.close()
        }
    }

    @Test func rulesAndDatabasesAreReadAtTheirPlace() async throws {
        try await RunningMessages.with { running in
            let lines = try await PipelinedLines.connect(running)
            let hold = try await WriterHold(running.store)
            let closed = #"{"rules": {".read": false}}"#
            try await lines.send([
                Call("messages.set", ["path": "/a", "value": 1]),
                Call("messages.rules.set", ["rules": .string(closed)]),
                Call("messages.rules.get"),
                Call("messages.get", ["path": "/a", "as": ["uid": "masuo"]]),
                Call("messages.rules.set", ["rules": .string(DefaultRules.signedIn)]),
                Call("messages.get", ["path": "/a", "as": ["uid": "masuo"]]),
                Call("messages.databases.create", ["database": "second"]),
                Call("messages.databases.list"),
                Call("messages.databases.drop", ["database": "second"]),
                Call("messages.databases.list"),
            ])
            try await hold.release(after: 5)
            let answers = try await lines.responses(10)
            #expect(answers[2]["rules"] == .string(closed))
            #expect(answers[3]["code"] == -32002)
            #expect(answers[5]["value"] == 1)
            #expect(answers[7]["databases"]?.array?.count == 2)
            #expect(answers[9]["databases"]?.array?.count == 1)
            lines.close()
        }
    }

    @Test(arguments: [false, true])
    func listenerBeginsAtItsPlace(somebodyListensAlready: Bool) async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let other = running.administrator
            if somebodyListensAlready { _ = try await other.subscribe(Messages.Listen(path: "/")) }
            let lines = try await PipelinedLines.connect(running)
            let hold = try await WriterHold(running.store)
            try await lines.send([
                Call("messages.set", ["path": "/x", "value": 1]),
                Call("messages.listen", ["path": "/x"]),
                Call("messages.set", ["path": "/x", "value": 2]),
            ])
            try await hold.release(after: 2)
            let answers = try await lines.responses(3)
            #expect(answers[1]["version"] == answers[0]["version"])
            #expect(lines.events.map(Self.data) == [1, 2])
            #expect(lines.events.map { $0["version"] } == [answers[0]["version"], answers[2]["version"]])
            lines.close()
        }
    }

    @Test func followerBeginsAtItsPlace() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let lines = try await PipelinedLines.connect(running)
            let hold = try await WriterHold(running.store)
            try await lines.send([
                Call("messages.set", ["path": "/x", "value": 1]),
                Call("messages.follow"),
                Call("messages.set", ["path": "/x", "value": 2]),
            ])
            try await hold.release(after: 2)
            let answers = try await lines.responses(3)
            #expect(answers[1]["version"] == answers[0]["version"])
            #expect(lines.events.map { $0["version"] } == [answers[2]["version"]])
            lines.close()
        }
    }

    @Test(arguments: [1, 2, 3, 4])
    func pipelinedMixGetsTheResponsesOfSingleSteps(seed: Int) async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let elsewhere = running.administrator
            let isOver = Atomic<Bool>(false)
            async let noise: Void = {
                var number = 0.0
                while !isOver.load(ordering: .relaxed) {
                    number += 1
                    _ = try await elsewhere.call(Messages.Set(path: "/theirs", value: .number(number)))
                }
            }()
            let lines = try await PipelinedLines.connect(running)
            var script = OrderScript(seed: seed)
            for _ in 0..<15 {
                let steps = script.steps(40)
                try await lines.send(steps.map { Call($0.method, $0.params) }, asBatch: script.flip())
                let answers = try await lines.responses(steps.count)
                for (step, answer) in zip(steps, answers) {
                    for (name, value) in step.expected {
                        #expect(answer[name] == value, "\(step.method) \(step.params), seed \(seed)")
                    }
                    guard let first = step.firstEvent else { continue }
                    let event = try await lines.firstEvent(of: try #require(answer["subscription"]?.string))
                    #expect(Self.data(event) == first, "seed \(seed)")
                    #expect(event["version"] == answer["version"])
                }
            }
            isOver.store(true, ordering: .relaxed)
            try await noise
            lines.close()
        }
    }

    private static func data(_ event: JSONValue) -> JSONValue? { event["events"]?.array?.first?["data"] }

    static let rules = #"{"rules": {"mine": {".indexOn": "n"}}}"#
}

/// Random steps on `/mine`, with the expected response of each.
private struct OrderScript {
    struct Step {
        var method: String
        var params: JSONObject
        var expected: [String: JSONValue] = [:]
        var firstEvent: JSONValue?
    }

    /// What is below `/mine`: a number by key.
    private var model: [String: Int] = [:]
    private var random: SeededRandom
    private var listeners = 0

    init(seed: Int) { random = SeededRandom(seed: UInt64(seed)) }

    mutating func flip() -> Bool { Bool.random(using: &random) }

    mutating func steps(_ count: Int) -> [Step] { (0..<count).map { _ in step() } }

    private mutating func step() -> Step {
        let key = ["a", "b", "c", "d"].randomElement(using: &random) ?? "a"
        let number = Int.random(in: 0..<5, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1:
            model[key] = number
            return Step(method: "messages.set", params: ["path": .string("/mine/\(key)"), "value": Self.child(number)])
        case 2:
            model[key] = nil
            return Step(method: "messages.remove", params: ["path": .string("/mine/\(key)")])
        case 3:
            model["e"] = nil
            model[key] = number
            let values: JSONObject = ["e": .null, "\(key)/n": .number(Double(number))]
            return Step(method: "messages.update", params: ["path": "/mine", "values": .object(values)])
        case 4:
            model = ["e": number]
            return Step(method: "messages.set", params: ["path": "/mine", "value": ["e": Self.child(number)]])
        case 5: return query()
        case 6:
            let keys = JSONObject(uniqueMembers: model.keys.sorted().map { JSONObject.Member($0, true) })
            return Step(
                method: "messages.get", params: ["path": "/mine", "shallow": true],
                expected: ["value": model.isEmpty ? .null : .object(keys)])
        case 7 where listeners < 50:
            listeners += 1
            return Step(method: "messages.listen", params: ["path": "/mine"], firstEvent: tree)
        case 8:
            return Step(
                method: "messages.get", params: ["path": .string("/mine/\(key)/n")],
                expected: ["value": model[key].map { .number(Double($0)) } ?? .null])
        default: return Step(method: "messages.get", params: ["path": "/mine"], expected: ["value": tree])
        }
    }

    private func query() -> Step {
        let sorted = model.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.suffix(2)
        return Step(
            method: "messages.get", params: ["path": "/mine", "query": ["orderBy": "n", "limitToLast": 2]],
            expected: [
                "keys": .array(sorted.map { .string($0.key) }),
                "value": .object(
                    JSONObject(uniqueMembers: sorted.map { JSONObject.Member($0.key, Self.child($0.value)) })),
            ])
    }

    private var tree: JSONValue {
        if model.isEmpty { return .null }
        let sorted = model.sorted { $0.key < $1.key }
        return .object(JSONObject(uniqueMembers: sorted.map { JSONObject.Member($0.key, Self.child($0.value)) }))
    }

    private static func child(_ number: Int) -> JSONValue { ["n": .number(Double(number))] }
}

private struct Call {
    var method: String
    var params: JSONObject

    init(_ method: String, _ params: JSONObject = [:]) {
        self.method = method
        self.params = params
    }
}

/// An administrator's connection that sends many requests before it reads a response.
private final class PipelinedLines {
    private let lines: RawLines
    private var last = 0
    /// Params of the notifications that came, in order.
    private(set) var events: [JSONValue] = []

    private init(_ lines: RawLines) { self.lines = lines }

    static func connect(_ running: RunningMessages) async throws -> PipelinedLines {
        let pipelined = PipelinedLines(try await RawLines.connect(running))
        try await pipelined.send([Call("session.authenticate", ["auth": "admin"])])
        _ = try await pipelined.responses(1)
        return pipelined
    }

    /// In one piece, each on a line of its own or all in one batch.
    func send(_ requests: [Call], asBatch: Bool = false) async throws {
        let texts = requests.map { request -> JSONValue in
            last += 1
            return [
                "jsonrpc": "2.0", "id": .number(Double(last)), "method": .string(request.method),
                "params": .object(request.params),
            ]
        }
        if asBatch { return try await lines.send(String(decoding: JSONValue.array(texts).encoded, as: UTF8.self)) }
        try await lines.send(texts.map { String(decoding: $0.encoded, as: UTF8.self) }.joined(separator: "\n"))
    }

    /// Results and errors of the last `count` requests, in the order of the requests; slow ones may come later.
    func responses(_ count: Int) async throws -> [JSONValue] {
        var answers: [Double: JSONValue] = [:]
        while answers.count < count {
            let line = try await lines.next()
            if let event = line["params"] {
                events.append(event)
                continue
            }
            for answer in line.array ?? [line] {
                let id = try #require(answer["id"]?.number)
                answers[id] = answer["result"] ?? answer["error"]
            }
        }
        return answers.sorted { $0.key < $1.key }.map(\.value)
    }

    func firstEvent(of subscription: String) async throws -> JSONValue {
        while true {
            if let event = events.first(where: { $0["subscription"]?.string == subscription }) { return event }
            events.append(try #require(try await lines.next()["params"]))
        }
    }

    func close() { lines.close() }
}

/// Holds the writer's thread, so that what is submitted meanwhile waits together.
final class WriterHold: Sendable {
    private let store: any Store
    private let gate = DispatchSemaphore(value: 0)

    init(_ store: any Store) async throws {
        self.store = store
        let (reached, gate) = (Flag(), gate)
        store.submit(
            { _ in
                reached.isReached.store(true, ordering: .releasing)
                _ = gate.wait(timeout: .now() + 240)
            }, completion: { _ in })
        try await eventually("it is reached") { reached.isReached.load(ordering: .acquiring) }
    }

    /// Lets the writer go on when at least so many submissions wait for it.
    func release(after count: Double) async throws {
        try await eventually("it is reached") { store.statistics["store.waiting_writes"] ?? 0 >= count }
        gate.signal()
    }

    private final class Flag: Sendable {
        let isReached = Atomic<Bool>(false)
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging
import Synchronization
import Testing

@testable import HatoMessages

/// What the log says of operations that take long. Time is what the tests say it is.
@Suite struct SlowOperationTests {
    /// A clock that stands still, but for a jump at one of the times it is read.
    private final class JumpingClock: Sendable {
        private struct State {
            var now = Duration.zero
            /// Reads until the jump; nil: none is due.
            var left: Int?
            var jump = Duration.zero
        }

        private let state = Mutex(State())

        /// From now on, the `read`th read is later than the one before.
        func jump(by duration: Duration, atRead read: Int) {
            state.withLock { ($0.left, $0.jump) = (read, duration) }
        }

        var now: Duration {
            state.withLock { state in
                guard let left = state.left else { return state.now }
                state.left = left > 1 ? left - 1 : nil
                if left == 1 { state.now += state.jump }
                return state.now
            }
        }
    }

    private static let rules = #"{"rules": {".read": true, ".write": true, "chats": {"$chat": {"messages": {}}}}}"#

    private static func with(
        change: (inout MessagesConfiguration) -> Void = { _ in },
        _ body: (RunningMessages, JumpingClock, LogLines) async throws -> Void
    ) async throws {
        let (clock, lines) = (JumpingClock(), LogLines())
        try await RunningMessages.with(
            rules: rules,
            change: {
                $0.uptime = { clock.now }
                change(&$0)
            }, logger: lines.logger
        ) { try await body($0, clock, lines) }
    }

    /// A write reads the clock when it arrives, before and after it is planned, when it is durable and at its response.
    @Test(arguments: [
        (2, "waiting for its turn"), (3, "planning"), (4, "other commits"), (5, "sending events"),
    ])
    func slowWriteIsLoggedWithItsReason(read: Int, reason: String) async throws {
        try await Self.with { running, clock, lines in
            let client = running.user("masuo")
            // So far that what rules and syncs take, which is measured by another clock, is nothing beside it.
            clock.jump(by: .seconds(1_000), atRead: read)
            let path: TreePath = "/chats/c1/messages/m1/text"
            _ = try await client.call(Messages.Set(path: path, value: "a secret"))
            let line = try await lines.next()
            #expect(line["method"] == "messages.set")
            #expect(line["path"] == "/chats/*/messages/*/*")
            #expect(line["reason"] == reason)
            #expect(line["milliseconds"] == "1000000")
            #expect((900_000...1_000_000).contains(Int(line["reasonMilliseconds"] ?? "") ?? 0))
            #expect(Int(line["rowsRead"] ?? "") != nil)
            #expect(!line.values.contains { $0.contains("secret") || $0.contains("masuo") || $0.contains("c1") })
            await client.close()
        }
    }

    @Test func slowReadSaysHowManyRowsItRead() async throws {
        try await Self.with { running, clock, lines in
            let client = running.administrator
            var messages = JSONObject()
            for number in 0..<50 { messages.append("m\(number)", .number(Double(number))) }
            _ = try await client.call(Messages.Set(path: "/chats/c1/messages", value: .object(messages)))
            clock.jump(by: .milliseconds(101), atRead: 3)
            _ = try await client.call(Messages.Get(path: "/chats/c1/messages"))
            let line = try await lines.next()
            #expect(line["method"] == "messages.get")
            #expect(line["path"] == "/chats/*/messages")
            #expect(line["reason"] == "reading rows")
            #expect(line["milliseconds"] == "101")
            #expect(try #require(Int(line["rowsRead"] ?? "")) >= 50)
            await client.close()
        }
    }

    @Test func slowListenIsLogged() async throws {
        try await Self.with { running, clock, lines in
            let client = running.administrator
            clock.jump(by: .seconds(2), atRead: 3)
            let subscription = try await client.subscribe(Messages.Listen(path: "/chats/c1"))
            defer { withExtendedLifetime(subscription) {} }
            let line = try await lines.next()
            #expect(line["method"] == "messages.listen" && line["milliseconds"] == "2000")
            await client.close()
        }
    }

    /// What a listener is shown is read elsewhere, for all who listen there.
    @Test(arguments: [nil, TreeQuery(order: .child("/age")), TreeQuery(order: .key, limit: .last(40))])
    func slowListenSaysHowManyRowsWereReadForIt(query: TreeQuery?) async throws {
        try await Self.with { running, clock, lines in
            let client = running.administrator
            var messages = JSONObject()
            for number in 100..<150 { messages.append("m\(number)", ["age": .number(Double(number))]) }
            _ = try await client.call(Messages.Set(path: "/chats/c1/messages", value: .object(messages)))
            clock.jump(by: .seconds(2), atRead: 3)
            let listen = Messages.Listen(path: "/chats/c1/messages", query: query)
            let subscription = try await client.subscribe(listen)
            defer { withExtendedLifetime(subscription) {} }
            let line = try await lines.next()
            #expect(line["method"] == "messages.listen" && line["reason"] == "reading rows")
            #expect(try #require(Int(line["rowsRead"] ?? "")) >= 40)
            await client.close()
        }
    }

    @Test func quickOnesAreNotLoggedAndNoneWhenItIsOff() async throws {
        try await Self.with { running, clock, lines in
            let client = running.administrator
            clock.jump(by: .milliseconds(100), atRead: 3)
            _ = try await client.call(Messages.Set(path: "/a", value: 1))
            clock.jump(by: .milliseconds(500), atRead: 3)
            _ = try await client.call(Messages.Set(path: "/b", value: 1))
            #expect(try await lines.next()["path"] == "/*")
            #expect(lines.count == 1)
            await client.close()
        }
        try await Self.with(change: { $0.limits.slowOperationMs = 0 }) { running, clock, lines in
            let client = running.administrator
            clock.jump(by: .seconds(5), atRead: 1)
            _ = try await client.call(Messages.Set(path: "/a", value: 1))
            _ = try await client.call(Messages.Get(path: "/a"))
            #expect(lines.count == 0)
            await client.close()
        }
    }

    @Test func wholePathsAreLoggedWhenAskedFor() async throws {
        try await Self.with(change: { $0.logsWholePaths = true }) { running, clock, lines in
            let client = running.administrator
            clock.jump(by: .seconds(1), atRead: 3)
            _ = try await client.call(Messages.Push(path: "/chats/c1/messages", value: 1))
            let line = try await lines.next()
            #expect(line["method"] == "messages.push" && line["path"] == "/chats/c1/messages")
            await client.close()
        }
    }

    // MARK: Values

    @Test func floodIsLeftOutAndCounted() {
        var lines = SlowLines(max: 2)
        let first = [0, 1, 2, 3].map { (second: Int) in lines.admit(at: .seconds(second)) }
        #expect(first == [0, 0, nil, nil])
        let early = lines.takeLeftOut(at: .seconds(59))
        #expect(early == nil)
        let next = [60, 61, 62].map { (second: Int) in lines.admit(at: .seconds(second)) }
        #expect(next == [2, 0, nil])
        let left = [119, 120, 120].map { (second: Int) in lines.takeLeftOut(at: .seconds(second)) }
        #expect(left == [nil, 1, nil])
        let last = lines.admit(at: .seconds(121))
        #expect(last == 0)
    }

    @Test func timeIsSpentWithOneThingOrAnother() {
        let watch = OperationWatch("messages.set", database: nil, path: nil, at: .milliseconds(100))
        watch.preparation = .milliseconds(5)
        watch.began = .milliseconds(110)
        watch.ended = .milliseconds(130)
        watch.rules = .milliseconds(4)
        watch.durable = .milliseconds(160)
        watch.sync = .milliseconds(25)
        let phases = watch.phases(until: .milliseconds(161))
        #expect(phases.map(\.phase) == [.waiting, .preparing, .planning, .rules, .group, .sync, .events])
        #expect(phases.map(\.time) == [5, 5, 16, 4, 5, 25, 1].map { Duration.milliseconds($0) })
        let read = OperationWatch("messages.get", database: nil, path: nil, at: .zero)
        read.began = .milliseconds(1)
        read.responseBytes = 2 << 20
        #expect(read.phases(until: .milliseconds(9)).map(\.phase) == [.waiting, .preparing, .response, .rules])
        let lost = OperationWatch("messages.get", database: nil, path: nil, at: .zero)
        #expect(lost.phases(until: .milliseconds(9)).map(\.phase) == [.waiting])
    }
}

/// What was logged with messages of one beginning, in order.
final class LogLines: Sendable {
    private let beginning: String
    private let level: Logger.Level
    private let (lines, continuation) = AsyncStream.makeStream(of: [String: String].self)
    private let counter = Mutex(0)

    init(of beginning: String = "slow operation", level: Logger.Level = .info) {
        self.beginning = beginning
        self.level = level
    }

    var count: Int { counter.withLock { $0 } }

    var logger: Logger { Logger(label: "test") { _ in Handler(lines: self, logLevel: level) } }

    func next() async throws -> [String: String] {
        for await line in lines { return line }
        throw EndOfEvents()
    }

    private struct Handler: LogHandler {
        let lines: LogLines
        var logLevel: Logger.Level

        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(
            level _: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source _: String,
            file _: String, function _: String, line _: UInt
        ) {
            guard message.description.hasPrefix(lines.beginning) else { return }
            lines.counter.withLock { $0 += 1 }
            lines.continuation.yield((metadata ?? [:]).mapValues { $0.description })
        }
    }
}

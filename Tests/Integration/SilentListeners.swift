import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Listeners that do not read their events, on the built programs.
@Suite(.timeLimit(.minutes(10)))
struct SilentListeners {
    private static let eventBytes = 15 << 20

    /// The test reads /proc.
    private static var isLinux: Bool {
        #if os(Linux)
            true
        #else
            false
        #endif
    }

    /// One copy of an event serves all listeners: not one each.
    @Test(.enabled(if: isLinux)) func eventOfSilentListenersIsInMemoryOnce() async throws {
        try await TestStack.run { stack in
            let (address, process) = (Self.address(stack), stack.processIdentifier)
            let writer = stack.client(.messages, as: .administrator)
            // The memory of a large write itself is there before the first measurement.
            try await Self.write(Self.eventBytes, to: "/alone", writer)
            let key = stack.administratorKey
            let silent = try await Blocking.run {
                try (0..<300).map { _ in try PlainSocket.listening(to: "/heard", at: address, key) }
            }
            let last = try await Blocking.run { try PlainSocket.listening(to: "/heard", at: address, key) }
            // Its first event, which is null.
            _ = try await Blocking.run { try last.line() }
            let before = try Self.residentBytes(process)
            try await Self.write(Self.eventBytes, to: "/heard", writer)
            // The newest listener gets the event last.
            let event = try await Blocking.run { try last.line() }
            #expect(event.count > Self.eventBytes)
            for _ in 0..<8 {
                // New connections are assigned to all event loops in turn; earlier work of the loops is done by then.
                let other = stack.client(.messages, as: .administrator)
                _ = try await other.call(Service.Health())
            }
            let growth = try Self.residentBytes(process) - before
            #expect(growth < 10 * Self.eventBytes, "grew by \(growth >> 20) MiB for \(silent.count) listeners")
            // New listeners now get the bytes that are on their way already.
            let late = try await Blocking.run {
                try (0..<100).map { _ in try PlainSocket.listening(to: "/heard", at: address, key) }
            }
            let later = try Self.residentBytes(process) - before
            #expect(later < 10 * Self.eventBytes, "grew by \(later >> 20) MiB, with \(late.count) more")
        }
    }

    @Test func listenerIsBehindWhileEventsFillTheBudgetAndGetsTheNewestValueAfter() async throws {
        let folder = try TemporaryFolder()
        let program = try await ServingProgram(
            "hato-messages",
            [
                "--data", "\(folder.path)/data", "--auth", "127.0.0.1:1", "--process-bytes-in-flight-max",
                "\(64 << 20)",
                // Those that do not read keep their events until the test ends them, however slow it is.
                "--stalled-peer-seconds-max", "600", "--awaited-event-seconds-max", "600",
            ], in: folder)
        let (address, key) = (program.address, ServingProgram.administratorKey)
        let writer = try program.client()
        var silent: [PlainSocket] = []
        for name in ["a", "b", "c", "d", "e"] {
            silent.append(try await Blocking.run { try PlainSocket.listening(to: "/\(name)", at: address, key) })
            try await Self.write(9 << 20, to: "/\(name)", writer)
        }
        let own = try await Blocking.run { try PlainSocket.listening(to: "/own", at: address, key) }
        // Its first event, which is null.
        _ = try await Blocking.run { try own.line() }
        // A connection gets its own event before its response, unless it is behind.
        let answer = try await Blocking.run {
            try own.send("messages.set", ["path": "/own", "value": Self.value(9 << 20, "first")])
            return try own.line()
        }
        #expect(try JSONParser.parse(answer)["result"] != nil, "an event came although the budget is full")
        try await Self.write(9 << 20, to: "/own", writer, name: "newest")
        for peer in silent { peer.end() }
        let event = try await Blocking.run { try own.line() }
        let entry = try JSONParser.parse(event)["params"]?["events"]?.array?.first
        #expect(entry?["path"] == "/")
        #expect(entry?["data"]?["name"] == "newest")
        // From now on it gets all events again.
        try await Self.write(100, to: "/own", writer, name: "small")
        let next = try await Blocking.run { try own.line() }
        #expect(try JSONParser.parse(next)["params"]?["events"]?.array?.first?["data"]?["name"] == "small")
        await program.stop()
    }

    private static func address(_ stack: TestStack) -> String {
        "127.0.0.1:\(stack.configuration(.messages).port)"
    }

    private static func value(_ bytes: Int, _ name: String) -> JSONValue {
        var object = JSONObject()
        object.append("name", .string(name))
        let part = String(repeating: "x", count: min(bytes, 1 << 20))
        for number in 0..<max(1, bytes >> 20) { object.append("part\(number)", .string(part)) }
        return .object(object)
    }

    private static func write(_ bytes: Int, to path: String, _ writer: RPCClient, name: String = "x") async throws {
        _ = try await writer.call(Messages.Set(path: try TreePath(path), value: value(bytes, name)))
    }

    private static func residentBytes(_ process: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return try #require(line?.split(separator: " ").compactMap { Int($0) }.first) << 10
    }
}

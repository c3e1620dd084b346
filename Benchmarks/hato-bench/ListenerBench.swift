import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// The cost of many listeners: of an event that many of them do not read, and of a listen beside thousands on the same
/// connection.
struct ListenerBench: Sendable {
    private static let silentListeners = 500
    private static let updateBytes = 15 << 20
    private static let listenersOfOne = 10_000
    /// The last of them, which are measured.
    private static let measuredListens = 2_000
    /// Whose tokens they are listened with: one user may not have so many.
    private static let users = 4

    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        var tokens: [String] = []
        for _ in 0..<Self.users { tokens.append(try await stack.newUser().idToken) }
        let (bench, all) = (self, tokens)
        table.add(try await Blocking.run { try bench.silentRow(all[0]) })
        table.add(try await Blocking.run { try bench.listenRow(all) })
        return table
    }

    private var port: Int { stack.configuration(.messages).port }

    /// The same is written twice: without listeners, and with listeners that read nothing after their first event.
    private func silentRow(_ token: String) throws -> Table.Row {
        let writer = try RawSocket(port: port, signedInWith: token)
        defer { writer.close() }
        for turn in 0..<2 { try write(to: "unheard\(turn)", writer) }
        let silent = try (0..<Self.silentListeners).map { _ in
            let socket = try RawSocket(port: port, receiveBytes: 4 << 10, signedInWith: token)
            try socket.openListener(on: "heard")
            return socket
        }
        defer { for socket in silent { socket.close() } }
        let watch = try MemoryWatch(stack.processIdentifier)
        try write(to: "heard", writer)
        // Work that reaches a loop now comes after the events.
        for _ in 0..<8 {
            let socket = try RawSocket(port: port)
            try socket.call(Service.Health.method)
            socket.close()
        }
        return Table.Row(
            what: "memory: \(Self.silentListeners) listeners that never read, and one update of 15 MiB",
            value: Double(watch.growth() >> 20), unit: "MiB", goals: [Goal(.value, .atMost(64))])
    }

    private func write(to room: String, _ writer: RawSocket) throws {
        let part = String(repeating: "x", count: 1 << 20)
        var values = JSONObject()
        for number in 0..<Self.updateBytes >> 20 { values.append("m\(number)", .string(part)) }
        try writer.call(
            Messages.Update.method,
            EncodedJSON(["path": .string("/chats/\(room)/messages"), "values": .object(values)]))
    }

    /// By the processor time of the event loops' threads, which have no other work.
    private func listenRow(_ tokens: [String]) throws -> Table.Row {
        let socket = try RawSocket(port: port, signedInWith: tokens[0])
        defer { socket.close() }
        try listen(Self.listenersOfOne - Self.measuredListens, tokens, socket)
        let before = try LoopTime.microseconds(of: stack.processIdentifier)
        try listen(Self.measuredListens, tokens, socket)
        let spent = try LoopTime.microseconds(of: stack.processIdentifier) - before
        return Table.Row(
            what: "listen: loop time of one, beside \(Self.listenersOfOne) with tokens on its connection",
            value: Double(spent) / Double(Self.measuredListens), unit: "µs", goals: [Goal(.value, .atMost(100))])
    }

    /// Each with the credential in its call; the response and the first event of each are read.
    private func listen(_ count: Int, _ tokens: [String], _ socket: RawSocket) throws {
        let inFlight = 100
        for batch in 0..<count / inFlight {
            let token = tokens[batch % tokens.count]
            let params = EncodedJSON(["path": "/chats/quiet/messages", "auth": .string(token)]).bytes
            try socket.send((0..<inFlight).flatMap { _ in ChatRequests.line(Messages.Listen.method, params) })
            for _ in 0..<2 * inFlight {
                let line = try socket.readLine()
                if line.contains("\"error\"") { throw BenchError("a listen was refused: \(line)") }
            }
        }
    }
}

/// The processor time of the threads of a process that run event loops.
enum LoopTime {
    static func microseconds(of process: Int32) throws -> Int {
        let folder = "/proc/\(process)/task"
        let perSecond = sysconf(Int32(_SC_CLK_TCK))
        guard perSecond > 0 else { throw BenchError("the processor's time has no unit") }
        var ticks = 0
        for thread in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let text = try String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)
            // The name is in parentheses, and may contain anything.
            guard let open = text.firstIndex(of: "("), let close = text.lastIndex(of: ")"),
                text[text.index(after: open)..<close].hasPrefix("NIO-ELT")
            else { continue }
            let fields = text[text.index(after: close)...].split(separator: " ")
            // proc(5): utime and stime are fields 14 and 15; the first behind the name is field 3.
            guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { continue }
            ticks += user + system
        }
        return ticks * 1_000_000 / perSecond
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// The growth of the stack's memory for each idle connection, for each listener, and for a listener that never reads.
///
/// It is the growth of the resident memory of the process, over so many of them that other growth is small in
/// comparison.
struct MemoryBench: Sendable {
    private static let connections = 2_000
    private static let silentListeners = 100
    /// Written while the silent listeners are connected: the cost of each of them if events were kept.
    private static let silentBytes = 16 << 20

    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        let token = try await stack.newUser().idToken
        let bench = self
        for row in try await Blocking.run({ try bench.connectionRows(token) }) { table.add(row) }
        for bytes in [200, 16 << 10] {
            table.add(try await Blocking.run { try bench.silentRow(token, postBytes: bytes) })
        }
        table.add(Table.Row(what: "memory: the whole stack", value: Double(try resident() >> 20), unit: "MB"))
        return table
    }

    private var port: Int { stack.configuration(.messages).port }

    private func connectionRows(_ token: String) throws -> [Table.Row] {
        // Memory that is allocated once (and what the allocator keeps) does not belong to them.
        try warmUp(token)
        let before = try resident()
        let sockets = try (0..<Self.connections).map { _ in try RawSocket(port: port) }
        defer { for socket in sockets { socket.close() } }
        for socket in sockets { try socket.call(Service.Health.method) }
        let connected = try resident()
        for socket in sockets { try socket.signIn(token) }
        let signedIn = try resident()
        for (index, socket) in sockets.enumerated() { try socket.openListener(on: "quiet\(index % 100)") }
        let listening = try resident()
        return [
            row("an idle connection", connected - before, of: Self.connections, [Goal(.value, .atMost(12))]),
            row("an idle connection, signed in", signedIn - before, of: Self.connections, [Goal(.value, .atMost(12))]),
            row("a listener, beside its connection", listening - signedIn, of: Self.connections),
        ]
    }

    private func warmUp(_ token: String) throws {
        for _ in 0..<50 {
            let socket = try RawSocket(port: port, signedInWith: token)
            try socket.call(Service.Health.method)
            try socket.openListener(on: "quiet0")
            socket.close()
        }
    }

    /// The same is written twice: without listeners, and with listeners that read nothing after their first event.
    private func silentRow(_ token: String, postBytes: Int) throws -> Table.Row {
        let room = "silent\(postBytes)"
        let writer = try RawSocket(port: port, signedInWith: token)
        defer { writer.close() }
        try write(postBytes, to: room, writer)
        let before = try resident()
        try write(postBytes, to: room, writer)
        let between = try resident()
        let silent = try (0..<Self.silentListeners).map { _ in
            let socket = try RawSocket(port: port, receiveBytes: 4 << 10, signedInWith: token)
            try socket.openListener(on: room)
            return socket
        }
        defer { for socket in silent { socket.close() } }
        try write(postBytes, to: room, writer)
        let after = try resident()
        let written =
            "\(Figure.text(Double(Self.silentBytes >> 20))) MB of \(Figure.text(Double(postBytes))) bytes each"
        return row(
            "a listener that never reads, \(written)", (after - between) - max(0, between - before),
            of: Self.silentListeners, [Goal(.value, .atMost(1_000))])
    }

    /// Always the same child, so that the room stays small; each time another value, because an unchanged one has no
    /// event.
    private func write(_ postBytes: Int, to room: String, _ writer: RawSocket) throws {
        let text = String(repeating: "x", count: postBytes)
        let inFlight = 16
        for number in 0..<Self.silentBytes / postBytes / inFlight {
            let lines = (0..<inFlight).flatMap { entry in
                let value = JSONValue.string("\(number * inFlight + entry) \(text)")
                let params: JSONObject = ["path": .string("/chats/\(room)/messages/last"), "value": value]
                return ChatRequests.line(Messages.Set.method, EncodedJSON(.object(params)).bytes)
            }
            try writer.send(lines)
            for _ in 0..<inFlight { try writer.readLine() }
        }
    }

    private func row(_ what: String, _ bytes: Int, of count: Int, _ goals: [Goal] = []) -> Table.Row {
        Table.Row(what: "memory: \(what)", value: Double(bytes) / Double(count) / 1_024, unit: "kB", goals: goals)
    }

    private func resident() throws -> Int { try ResidentMemory.bytes(of: stack.processIdentifier) }
}

enum ResidentMemory {
    #if os(Linux)
        static func bytes(of process: Int32) throws -> Int {
            let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
            let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
            guard let kilobytes = line?.split(separator: " ").compactMap({ Int($0) }).first else {
                throw BenchError("process \(process) has no resident memory")
            }
            return kilobytes << 10
        }
    #else
        static func bytes(of process: Int32) throws -> Int {
            let ps = Process()
            ps.executableURL = URL(fileURLWithPath: "/bin/ps")
            ps.arguments = ["-o", "rss=", "-p", String(process)]
            let output = Pipe()
            ps.standardOutput = output
            try ps.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            ps.waitUntilExit()
            guard let kilobytes = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                throw BenchError("ps does not know process \(process)")
            }
            return kilobytes << 10
        }
    #endif
}

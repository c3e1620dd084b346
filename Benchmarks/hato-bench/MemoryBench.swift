import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// What the stack's memory grows by for each idle connection, for each listener, and for a listener that never reads.
///
/// Growth of the resident memory of the process, over so many of them that other growth is small beside it.
struct MemoryBench: Sendable {
    private static let connections = 2_000
    private static let silentListeners = 100
    /// Written beside the silent listeners: what each of them would cost if it were kept.
    private static let silentBytes = 64 << 20
    private static let silentPostBytes = 16 << 10

    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        let token = try await stack.newUser().idToken
        let bench = self
        for row in try await Blocking.run({ try bench.connectionRows(token) }) { table.add(row) }
        table.add(try await Blocking.run { try bench.silentRow(token) })
        table.add(Table.Row(what: "memory: the whole stack", value: Double(try resident() >> 20), unit: "MB"))
        return table
    }

    private var port: Int { stack.configuration(.messages).port }

    private func connectionRows(_ token: String) throws -> [Table.Row] {
        // What is made once (and what the allocator keeps) is not theirs.
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

    /// The same is written twice: to nobody, and to listeners that read nothing after their first event.
    private func silentRow(_ token: String) throws -> Table.Row {
        let writer = try RawSocket(port: port, signedInWith: token)
        defer { writer.close() }
        try write(writer)
        let before = try resident()
        try write(writer)
        let between = try resident()
        let silent = try (0..<Self.silentListeners).map { _ in
            let socket = try RawSocket(port: port, receiveBytes: 4 << 10, signedInWith: token)
            try socket.openListener(on: "quiet")
            return socket
        }
        defer { for socket in silent { socket.close() } }
        try write(writer)
        let after = try resident()
        let megabytes = Figure.text(Double(Self.silentBytes >> 20))
        return row(
            "a listener that never reads, \(megabytes) MB written", (after - between) - max(0, between - before),
            of: Self.silentListeners, [Goal(.value, .atMost(Double((1 << 20) + Self.silentPostBytes) / 1_024))])
    }

    /// Always to the same child, so that the room stays small; each time something else, or nobody would be told.
    private func write(_ writer: RawSocket) throws {
        let text = String(repeating: "x", count: Self.silentPostBytes)
        for number in 0..<Self.silentBytes / Self.silentPostBytes {
            let params = EncodedJSON(["path": "/chats/quiet/messages/last", "value": .string("\(number) \(text)")])
            try writer.call(Messages.Set.method, params)
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

import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// What the stack's memory grows by for each idle connection and for each listener.
struct MemoryBench: Sendable {
    static let connections = 2_000

    var stack: TestStack

    func measure(_ table: inout Table) async throws {
        let user = try await stack.newUser()
        let (port, token, process) = (stack.configuration(.messages).port, user.idToken, stack.processIdentifier)
        let (idle, listening) = try await RawSocket.onThread {
            let before = try Self.residentBytes(process)
            let sockets = try (0..<Self.connections).map { _ in
                let socket = try RawSocket(port: port)
                _ = try socket.call("service.health", "{}")
                return socket
            }
            let connected = try Self.residentBytes(process)
            for socket in sockets { _ = try socket.call("session.authenticate", "{\"auth\":\"\(token)\"}") }
            let authenticated = try Self.residentBytes(process)
            for (index, socket) in sockets.enumerated() {
                _ = try socket.call("messages.listen", "{\"path\":\"/chats/quiet\(index % 100)/messages\"}")
            }
            let listening = try Self.residentBytes(process)
            for socket in sockets { socket.close() }
            return (connected - before, listening - authenticated)
        }
        table.add("memory: an idle connection", Self.kilobytes(idle))
        table.add("memory: a listener", Self.kilobytes(listening))
        table.add("memory: the whole stack", "\(try Self.residentBytes(process) >> 20) MB")
    }

    private static func kilobytes(_ bytes: Int) -> String {
        "\(Double(bytes / connections / 100) / 10) kB"
    }

    private static func residentBytes(_ process: Int32) throws -> Int {
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
}

import HatoModel
import HatoRPC
import HatoTesting

/// The memory of clients of a gateway that do nothing, and of those that never read.
struct GatewayMemoryBench: Sendable {
    private static let idle = 8_000
    private static let idleOverTLS = 2_000
    private static let silent = 20
    /// Written while the silent ones are connected.
    private static let silentBytes = 128 << 20
    private static let postBytes = 16 << 10

    /// Its auth is used.
    var stack: TestStack
    var messages: ServedProgram
    var folder: PushFolder

    func rows() async throws -> Table {
        var table = Table()
        let token = try await stack.newUser().idToken
        for row in try await idleRows(token) { table.add(row) }
        for row in try await overTLS(token) { table.add(row) }
        let bench = self
        for kind in Silent.allCases {
            for row in try await Blocking.run({ try bench.silentRows(kind, token) }) { table.add(row) }
        }
        return table
    }

    // MARK: Idle

    private func idleRows(_ token: String) async throws -> [Table.Row] {
        let gateway = try ServedProgram.gateway(before: stack, messages: messages.address, folder)
        let bench = self
        return try await Blocking.run {
            // Memory that is allocated once does not belong to them.
            for number in 0..<50 { try Self.listener(gateway, token, number).close() }
            let before = try bench.resident(gateway)
            let sockets = try (0..<Self.idle).map { try Self.listener(gateway, token, $0) }
            defer { for socket in sockets { socket.close() } }
            return Self.rows("WebSocket", try bench.resident(gateway), since: before, count: Self.idle)
        }
    }

    private static func listener(_ gateway: ServedProgram, _ token: String, _ number: Int) throws -> RawSocket {
        try GatewaySockets.listener(port: gateway.port, as: token, room: "quiet\(number % 100)")
    }

    private func overTLS(_ token: String) async throws -> [Table.Row] {
        let gateway = try ServedProgram.gateway(
            before: stack, messages: messages.address, folder, tls: (folder.certificate, folder.certificateKey))
        let first = try await TLSListeners(50, port: gateway.port, folder, token)
        let before = try resident(gateway)
        let sockets = try await TLSListeners(Self.idleOverTLS, port: gateway.port, folder, token)
        let after = try resident(gateway)
        await first.close()
        await sockets.close()
        return Self.rows("WebSocket over TLS", after, since: before, count: Self.idleOverTLS)
    }

    private struct Resident {
        var gateway: Int
        var messages: Int
    }

    private func resident(_ gateway: ServedProgram) throws -> Resident {
        Resident(
            gateway: try ResidentMemory.bytes(of: gateway.processIdentifier),
            messages: try ResidentMemory.bytes(of: messages.processIdentifier))
    }

    private static func rows(_ what: String, _ after: Resident, since before: Resident, count: Int) -> [Table.Row] {
        let what = "an idle \(what) that listens, of \(Figure.text(Double(count)))"
        return [
            Table.Row(
                what: "memory: gateway, \(what)",
                value: Double(after.gateway - before.gateway) / Double(count) / 1_024, unit: "kB",
                goals: [Goal(.value, .atMost(30))]),
            Table.Row(
                what: "memory: messages, \(what)",
                value: Double(after.messages - before.messages) / Double(count) / 1_024, unit: "kB"),
        ]
    }

    // MARK: Silent

    private enum Silent: String, CaseIterable {
        case webSocket = "a WebSocket"
        case stream = "an event stream"
        case poller = "a poller"
    }

    /// Each room holds one child, which is written again and again.
    private func silentRows(_ kind: Silent, _ token: String) throws -> [Table.Row] {
        let gateway = try ServedProgram.gateway(before: stack, messages: messages.address, folder)
        let room = "silent-\(kind)"
        let writer = try RawSocket(port: messages.port, signedInWith: token)
        defer { writer.close() }
        let silent = try (0..<Self.silent).map { _ in
            switch kind {
            case .webSocket:
                try GatewaySockets.listener(port: gateway.port, as: token, room: room, receiveBytes: 4 << 10)
            case .poller: try GatewaySockets.poller(port: gateway.port, as: token, room: room, receiveBytes: 4 << 10)
            case .stream: try GatewaySockets.stream(port: gateway.port, as: token, room: room, receiveBytes: 4 << 10)
            }
        }
        defer { for socket in silent { socket.close() } }
        let watches = [
            ("gateway", try MemoryWatch(gateway.processIdentifier)),
            ("messages", try MemoryWatch(messages.processIdentifier)),
        ]
        try write(to: room, writer)
        let written = "\(Self.silentBytes >> 20) MB"
        let rows = watches.map { name, watch in
            Table.Row(
                what: "memory: \(name), \(kind.rawValue) that never reads while \(written) are written",
                value: Double(watch.growth()) / Double(Self.silent) / Double(1 << 20), unit: "MiB",
                goals: name == "gateway" ? [Goal(.value, .atMost(2))] : [])
        }
        // It is there, and has kept its clients.
        _ = try resident(gateway)
        for socket in silent where socket.hasEnded { throw BenchError("a client that does not read was closed") }
        return rows
    }

    private func write(to room: String, _ writer: RawSocket) throws {
        let text = String(repeating: "x", count: Self.postBytes)
        let (inFlight, reader) = (16, LineReader(writer))
        for number in 0..<Self.silentBytes / Self.postBytes / inFlight {
            let lines = (0..<inFlight).flatMap { entry in
                let value = JSONValue.string("\(number * inFlight + entry) \(text)")
                let params: JSONObject = ["path": .string("/chats/\(room)/messages/last"), "value": value]
                return ChatRequests.line(Messages.Set.method, EncodedJSON(.object(params)).bytes)
            }
            try writer.send(lines)
            for _ in 0..<inFlight { try reader.result(of: Messages.Set.method) }
        }
    }
}

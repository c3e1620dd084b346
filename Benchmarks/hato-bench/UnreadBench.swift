import HatoModel
import HatoRPC
import HatoTesting

/// Connections that request large values and read nothing: the memory of the stack, and the delay of other clients'
/// reads.
struct UnreadBench: Sendable {
    /// The memory that the stack may use.
    static let memoryBytes = 1 << 30

    private static let connections = 64
    private static let reads = 16
    private static let valueBytes = 15 << 20
    private static let room = "unread"

    var settings: BenchSettings
    var stack: TestStack

    func rows() async throws -> Table {
        let (settings, port, process) = (settings, stack.configuration(.messages).port, stack.processIdentifier)
        try await fill()
        let (hostile, other) = (try await stack.newUser().idToken, try await stack.newUser().idToken)
        return try await Blocking.run {
            let small = ChatRequests.line(Messages.Get.method, ChatRequests.newest(1, room: Self.room).bytes)
            var load = try RawLoad(at: port, as: other, LoadShape(1, 1), requests: [small])
            defer { load.close() }
            let alone = try load.windows(settings)
            let watch = try MemoryWatch(process)
            let sockets = try (0..<Self.connections).map { _ in
                let socket = try RawSocket(port: port, receiveBytes: 4 << 10, signedInWith: hostile)
                let params: JSONObject = ["path": "/chats/large"]
                let get = ChatRequests.line(Messages.Get.method, EncodedJSON(.object(params)).bytes)
                for _ in 0..<Self.reads { try socket.send(get) }
                return socket
            }
            defer { for socket in sockets { socket.close() } }
            let beside = try load.windows(settings)
            let resident = watch.first + watch.growth()
            var table = Table()
            let what = "beside \(Self.connections) connections that read nothing"
            table.add("unread: newest 1, alone", alone, "reads/s")
            table.add("unread: newest 1, \(what)", beside, "reads/s", goals: [Goal(.p99, .atMost(3 * alone.p99))])
            table.add(
                Table.Row(
                    what: "unread: the whole stack, \(what)", value: Double(resident >> 20), unit: "MB",
                    goals: [Goal(.value, .atMost(Double(Self.memoryBytes >> 20) * 1.1))]))
            return table
        }
    }

    private func fill() async throws {
        let client = stack.client(.messages, as: .administrator)
        let text = String(repeating: "x", count: Self.valueBytes / 2)
        let values: JSONObject = ["a": .string(text), "b": .string(text)]
        _ = try await client.call(
            method: Messages.Set.method, params: ["path": "/chats/large", "value": .object(values)])
        let messages: JSONObject = ["m1": ChatRequests.message(1)]
        _ = try await client.call(
            method: Messages.Set.method,
            params: ["path": .string("/chats/\(Self.room)/messages"), "value": .object(messages)])
        await client.close()
    }
}

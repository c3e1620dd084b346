import HatoModel
import HatoRPC
import Logging

/// The wire alone: a method that answers what it got.
struct WireBench: Sendable {
    struct Echo: RPCRequest {
        static let method = "bench.echo"
        static let summary = "Answers what it got"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Echo> { .init(Echo(value: "a"), .init(value: "a")) }
        var value: JSONValue
        struct Result: Codable, Sendable { var value: JSONValue }

        static func decode(_ params: JSONObject) throws -> Echo { Echo(value: params["value"] ?? .null) }

        static func encode(_ result: Result, into writer: inout JSONWriter) throws {
            writer.beginObject()
            writer.member("value")
            writer.write(result.value)
            writer.endObject()
        }
    }

    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        var router = RPCRouter()
        router.handleInOrder(Echo.self) { request, _, reply in reply.succeed(.init(value: request.value)) }
        let server = RPCServer(
            RPCServerConfiguration(service: "bench", version: "1"), router: router, authenticator: Nobody(),
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        let (host, port) = try await server.start()
        let text = String(repeating: "x", count: 170)
        for (clients, depth) in [(1, 1), (1, 64), (64, 16)] {
            let load = ClientLoad(
                clients: (0..<clients).map { _ in RPCClient(RPCClientConfiguration(host: host, port: port)) },
                depth: depth, method: Echo.method, params: [EncodedJSON("{\"value\":\"\(text)\"}")])
            let window = try await load.windows(settings)
            table.add("wire: echo, \(clients) × \(depth), this client", window.rate, latency: window.latencies)
            for client in load.clients { await client.close() }
        }
        let request = Array(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"bench.echo\",\"params\":{\"value\":\"\(text)\"}}\n".utf8)
        for (clients, depth) in [(1, 64), (64, 16)] {
            let load = RawLoad(port: port, clients: clients, depth: depth, request: request, linesPerAnswer: 1)
            let window = try await load.windows(settings)
            table.add("wire: echo, \(clients) × \(depth), raw bytes", window.rate, latency: window.latencies)
        }
        await server.shutdown(grace: .seconds(1))
    }

    private struct Nobody: Authenticator {
        func remembered(_ credential: String) -> Caller? { nil }

        func authenticate(_ credential: String) async throws -> Caller {
            throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "This server knows nobody")
        }
    }
}

import HatoModel
import HatoRPC
import Logging

/// The transport alone: a method that returns its params.
struct WireBench: Sendable {
    struct Echo: RPCRequest {
        static let method = "bench.echo"
        static let summary = "Returns its params"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Echo> { .init(Echo(value: "a"), .init(value: "a")) }
        var value: JSONValue
        static let fields = Fields<Self>(blank: Self(value: .null), .required("value", \.value))
        struct Result: FieldObject {
            var value: JSONValue
            static let fields = Fields<Self>(blank: Self(value: .null), .required("value", \.value))

            // Written by hand, as is `decode`: only the transport is measured.
            func write(into writer: inout JSONWriter) {
                writer.beginObject()
                writer.member("value")
                writer.write(value)
                writer.endObject()
            }
        }

        static func decode(_ params: JSONObject) -> Echo { Echo(value: params["value"] ?? .null) }
    }

    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        var router = RPCRouter()
        router.handleInOrder(Echo.self) { request, _, reply in reply.succeed(.init(value: request.value)) }
        let server = RPCServer(
            RPCServerConfiguration(service: "bench", version: "1"), router: router, authenticator: Nobody(),
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        let (host, port) = try await server.start()
        let params = EncodedJSON(["value": .string(String(repeating: "x", count: 170))])
        let settings = settings
        for (clients, depth) in [(1, 1), (1, 64), (64, 16)] {
            let window = try await Blocking.run {
                var load = try RawLoad(
                    (0..<clients).map { _ in try RawSocket(port: port) }, depth: depth,
                    requests: [ChatRequests.line(Echo.method, params.bytes)], .jsonRPC)
                defer { load.close() }
                return try load.windows(settings)
            }
            table.add("wire: echo, \(LoadShape(clients, depth))", window, "/s")
        }
        for (clients, depth) in [(1, 1), (1, 64), (64, 16)] {
            let load = ClientLoad(
                clients: (0..<clients).map { _ in RPCClient(RPCClientConfiguration(host: host, port: port)) },
                depth: depth, method: Echo.method, params: [params])
            table.add("wire: echo, \(LoadShape(clients, depth)), public client", try await load.windows(settings), "/s")
            await load.close()
        }
        await server.shutdown(grace: .seconds(1))
    }

    private struct Nobody: Authenticator {
        func remembered(_ credential: String) -> Caller? { nil }

        func authenticate(_ credential: String) async throws -> Caller {
            throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "This server has no users")
        }
    }
}

/// The number of clients, and of each client's requests in flight.
struct LoadShape: Sendable, CustomStringConvertible {
    var clients: Int
    var depth: Int

    init(_ clients: Int, _ depth: Int) {
        self.clients = clients
        self.depth = depth
    }

    var description: String {
        let who = clients == 1 ? "1 client" : "\(clients) clients"
        return depth == 1 ? who : "\(who), \(depth) in flight each"
    }
}

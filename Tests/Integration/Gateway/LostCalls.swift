import HatoModel
import HatoTesting
import Testing

/// Requests of the REST interface whose calls the service leaves without a response.
@Suite(.timeLimit(.minutes(10)))
struct LostCalls {
    /// Clients repeat what is only unavailable: a write that was made would be made twice.
    @Test func aWriteThatAStoppingServiceLeavesHasAnUnknownOutcome() async throws {
        let (messages, folder) = (try await UnresponsiveMessages(), try TemporaryFolder())
        let gateway = try await ServingProgram("hato-gateway", ["--messages", messages.address], in: folder)
        // It takes a connection of its own.
        let large = "\"\(String(repeating: "x", count: 400_000))\""
        let requests: [(line: String, body: String?, status: Int)] = [
            ("PUT /a.json", "1", 504), ("POST /a.json", "1", 504), ("PATCH /a.json", #"{"b":1}"#, 504),
            ("DELETE /a.json", nil, 504), ("PUT /b.json?print=silent", large, 504), ("GET /a.json", nil, 503),
            ("HEAD /a.json", nil, 503),
        ]
        let sockets = try requests.map { request in
            let socket = try PlainSocket(gateway.address)
            try HTTPResponseText.request(request.line, body: request.body, on: socket)
            return socket
        }
        try await eventually("all calls are under way") { messages.count == requests.count }
        await messages.stop()
        for (socket, request) in zip(sockets, requests) {
            let response = try HTTPResponseText(next: socket, isHead: request.line.hasPrefix("HEAD"))
            #expect(response.status == request.status, "\(request.line)")
            #expect((response.headers["retry-after"] == nil) == (request.status == 504), "\(request.line)")
        }
        // What was not sent may be repeated.
        for (socket, request) in zip(sockets, requests) {
            let isHead = request.line.hasPrefix("HEAD")
            try HTTPResponseText.request(request.line, body: request.body, on: socket)
            #expect(try HTTPResponseText(next: socket, isHead: isHead).status == 503, "\(request.line)")
        }
        await gateway.stop()
    }
}

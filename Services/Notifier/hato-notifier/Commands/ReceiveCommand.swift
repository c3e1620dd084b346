import ArgumentParser
import HatoCommand
import HatoModel
import HatoPush
import HatoRPC
import HatoRuntime

/// A receiver of webhooks to try them with: prints one JSON line for each, and checks signatures when it knows the
/// secret.
struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive", abstract: "Receive webhooks on this machine and print one JSON line for each.",
        discussion: """
            The first line says where it listens; register that address with `devices register`. With --secret-file a delivery \
            whose signature is wrong gets HTTP status 401; "verified" in each line is the result of the check.
            """)

    @Option(help: "The address to listen on.") var host: String = "127.0.0.1"
    @Option(help: "The port; 0 takes any free one.") var port: Int = 8080
    @Option(help: ArgumentHelp("The file of the signing secrets, one a line; - is stdin.", valueName: "file"))
    var secretFile: String?
    @Option(help: "The HTTP status of the response.") var answer: Int = 204
    @Option(help: ArgumentHelp("Respond with 500 to this many deliveries first.", valueName: "count")) var failFirst:
        Int = 0
    @Option(help: ArgumentHelp("End after this many accepted deliveries.", valueName: "count"))
    var maxEvents: Int?

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port is from 0 to 65535.") }
        guard (200...599).contains(answer) else { throw ValidationError("--answer is from 200 to 599.") }
    }

    func run() async throws {
        let output = CommandOutput.standard(json: true)
        try await CommandSession.reporting(NotifierTarget.self, output) {
            let secrets = try (secretFile.map { try SecretInput.lines(of: $0) } ?? []).map { try WebhookSecret($0) }
            let (deliveries, arrivals) = AsyncStream.makeStream(of: WebhookReceipt.self)
            let status = answer
            let turns = Turns(failing: failFirst)
            let listener = try await listen { request in
                let receipt = WebhookReceipt(request, secrets: secrets, now: WallClock.milliseconds() / 1_000)
                let status = receipt.isRefused ? 401 : await turns.next() ? 500 : status
                arrivals.yield(receipt.with(status: status))
                return HTTPResponse(status: status)
            }
            try output.showLine(["listening": .string("http://\(host):\(listener.port)/")])
            var taken = 0
            for await receipt in deliveries {
                try output.showLine(receipt.json)
                if (200..<300).contains(receipt.status) { taken += 1 }
                if taken == maxEvents { break }
            }
            await listener.stop()
        }
    }

    private func listen(
        _ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async throws -> HTTPListener {
        do { return try await HTTPListener(host: host, port: port, answer: answer) } catch {
            throw CommandFailure(.inputOutput, "\(error)")
        }
    }
}

/// Whether it is still the turn of those that fail.
private actor Turns {
    private var failing: Int

    init(failing: Int) { self.failing = failing }

    func next() -> Bool {
        guard failing > 0 else { return false }
        failing -= 1
        return true
    }
}

/// What is printed of one delivery.
private struct WebhookReceipt: Sendable {
    var headers: WebhookHeaders
    var body: [UInt8]
    /// Nil without a secret to check with.
    var refusal: WebhookSignature.Refusal?
    var isChecked: Bool
    var status = 0

    var isRefused: Bool { refusal != nil }

    init(_ request: HTTPRequest, secrets: [WebhookSecret], now: Int64) {
        headers = WebhookHeaders(
            id: request.header("webhook-id"), timestamp: request.header("webhook-timestamp"),
            signature: request.header("webhook-signature"))
        body = request.body
        isChecked = !secrets.isEmpty
        guard isChecked else { return }
        do { try WebhookSignature.verify(headers, body: body, secrets: secrets, now: now) } catch { refusal = error }
    }

    func with(status: Int) -> WebhookReceipt {
        var receipt = self
        receipt.status = status
        return receipt
    }

    var json: JSONValue {
        var line = JSONObject()
        line["id"] = headers.id.map { .string($0) }
        if isChecked { line["verified"] = .bool(refusal == nil) }
        line["refusal"] = refusal.map { .string($0.rawValue) }
        line["status"] = .number(Double(status))
        line["body"] = (try? JSONParser.parse(body)) ?? .string(String(decoding: body, as: UTF8.self))
        return .object(line)
    }
}

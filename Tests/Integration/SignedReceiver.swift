import Crypto
import Foundation
import HatoModel
import HatoRuntime
import Synchronization

/// A receiver of webhooks that can be stopped and started again on its port.
final class SignedReceiver: Sendable {
    struct Received: Sendable {
        var id: String
        var timestamp: String
        var signature: String
        var body: [UInt8]

        var text: String? { (try? JSONParser.parse(body))?["data"]?["body"]?.string }

        /// The beginning of its text.
        var number: Int? { text.flatMap { Int($0.prefix { $0 != " " }) } }

        /// By the text of Standard Webhooks, without the code that signed.
        func isSigned(with secret: String) -> Bool {
            guard let key = Data(base64Encoded: String(secret.dropFirst("whsec_".count))) else { return false }
            let message = Data("\(id).\(timestamp).".utf8) + body
            let code = HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key))
            return signature.split(separator: " ").contains("v1,\(Data(code).base64EncodedString())")
        }
    }

    private struct State {
        var received: [Received] = []
        var listener: HTTPListener?
        var port = 0
    }

    private let state = Mutex(State())

    init() async throws { try await start() }

    var url: String { "http://127.0.0.1:\(state.withLock { $0.port })/hook" }
    var received: [Received] { state.withLock { $0.received } }

    func start() async throws {
        let listener = try await HTTPListener(host: "127.0.0.1", port: state.withLock { $0.port }) { request in
            let received = Received(
                id: request.header("webhook-id") ?? "", timestamp: request.header("webhook-timestamp") ?? "",
                signature: request.header("webhook-signature") ?? "", body: request.body)
            self.state.withLock { $0.received.append(received) }
            return HTTPResponse(status: 204)
        }
        state.withLock { state in
            state.listener = listener
            state.port = listener.port
        }
    }

    func stop() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        await listener?.stop()
    }
}

import CryptoExtras
import Foundation
import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization

/// What the notifier calls of Firebase, on this machine: access tokens, and messages of HTTP v1. Keeps the messages, or
/// passes them on.
final class FCMStandIn: Sendable {
    private struct State {
        var messages: [JSONValue] = []
        var count = 0
        var listener: HTTPListener?
        /// It is deleted with the last reference.
        var folder: TemporaryFolder
    }

    /// Takes a message in place of keeping it; returns the response to a call that fails.
    typealias Taking = @Sendable (JSONValue) async -> HTTPResponse?

    private let state: Mutex<State>
    private let taking: Taking?
    /// For the setting of that name.
    let appsFile: String

    private static let accessToken = "ya29.stand-in"
    private static let project = "prototype"

    /// The messages that came, the oldest first.
    var messages: [JSONValue] { state.withLock { $0.messages } }
    /// The messages to a token.
    func messages(to token: String) -> [JSONValue] {
        messages.filter { $0["token"]?.string == token }
    }

    init(limits: HTTPLimits = HTTPLimits(), taking: Taking? = nil) async throws {
        self.taking = taking
        let folder = try TemporaryFolder()
        let path = folder.path
        appsFile = "\(path)/apps.yaml"
        state = Mutex(State(folder: folder))
        let listener = try await HTTPListener(host: "127.0.0.1", port: 0, limits: limits) {
            [weak self] request in
            await self?.respond(to: request) ?? HTTPResponse(status: 503)
        }
        state.withLock { $0.listener = listener }
        let url = "http://127.0.0.1:\(listener.port)"
        let account: JSONValue = [
            "type": "service_account", "client_email": "hato@prototype.example",
            "project_id": .string(Self.project),
            "private_key_id": "k1", "token_uri": .string("\(url)/token"),
            "private_key": .string(
                try _RSA.Signing.PrivateKey(keySize: .bits2048).pkcs8PEMRepresentation),
        ]
        try Self.write(EncodedJSON(account).text, "\(path)/service-account.json")
        try Self.write(
            "default:\n  fcm: {service-account-file: service-account.json, url: \"\(url)\"}\n",
            "\(path)/apps.yaml")
    }

    private static func write(_ text: String, _ path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    private func respond(to request: HTTPRequest) async -> HTTPResponse {
        let json = [(name: "content-type", value: "application/json")]
        if request.target == "/token" {
            let text = #"{"access_token":"\#(Self.accessToken)","expires_in":3599,"token_type":"Bearer"}"#
            return HTTPResponse(status: 200, headers: json, body: Array(text.utf8))
        }
        guard request.target == "/v1/projects/\(Self.project)/messages:send",
            request.header("authorization") == "Bearer \(Self.accessToken)",
            let message = try? JSONParser.parse(request.body)["message"]
        else { return HTTPResponse(status: 400) }
        if let taking, let failure = await taking(message) { return failure }
        let number = state.withLock { state in
            state.count += 1
            if taking == nil { state.messages.append(message) }
            return state.count
        }
        let text = #"{"name":"projects/\#(Self.project)/messages/\#(number)"}"#
        return HTTPResponse(status: 200, headers: json, body: Array(text.utf8))
    }

    func stop() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        await listener?.stop()
    }
}

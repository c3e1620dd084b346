import CryptoExtras
import Foundation
public import HatoModel
public import HatoRuntime
import Synchronization

/// What the notifier calls of Firebase, on this machine: access tokens, and messages of HTTP v1. Keeps the messages, or
/// passes them on.
public final class FCMStandIn: Sendable {
    private struct State {
        var messages: [JSONValue] = []
        var count = 0
        var listener: HTTPListener?
    }

    /// Takes a message in place of keeping it; returns the response to a call that fails.
    public typealias Taking = @Sendable (JSONValue) async -> HTTPResponse?

    private let state = Mutex(State())
    private let taking: Taking?
    /// For the setting of that name. It is deleted with the last reference.
    public var appsFile: String { folder.appending(path: "apps.yaml").path }
    private let folder = URL.temporaryDirectory.appending(path: "hato-firebase-\(UUID().uuidString)")

    private static let accessToken = "ya29.stand-in"
    private static let project = "prototype"

    /// The messages that came, the oldest first.
    public var messages: [JSONValue] { state.withLock { $0.messages } }
    /// The messages to a token.
    public func messages(to token: String) -> [JSONValue] {
        messages.filter { $0["token"]?.string == token }
    }

    /// Listens on a free port of this machine. Throws errors of the file system and of listening.
    public init(limits: HTTPLimits = HTTPLimits(), taking: Taking? = nil) async throws {
        self.taking = taking
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
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
        try write("service-account.json", String(decoding: account.encoded, as: UTF8.self))
        try write("apps.yaml", "default:\n  fcm: {service-account-file: service-account.json, url: \"\(url)\"}\n")
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Writes a file beside the apps file, for the owner only. Throws errors of the file system.
    public func write(_ name: String, _ text: String) throws {
        let path = folder.appending(path: name)
        try Data(text.utf8).write(to: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path.path)
    }

    /// A file beside the apps file. Throws errors of the file system.
    public func read(_ name: String) throws -> String {
        try String(contentsOf: folder.appending(path: name), encoding: .utf8)
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

    /// Listens no more.
    public func stop() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        await listener?.stop()
    }
}

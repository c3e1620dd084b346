import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Messages and auth with a gateway in front of them, as built programs.
struct GatewayStack {
    let auth: ServingProgram
    let messages: ServingProgram
    let gateway: ServingProgram
    /// Nil unless it was asked for.
    var notifier: ServingProgram?
    private let folder: TemporaryFolder

    /// What is started, besides the rules.
    struct Options: Sendable {
        /// Further arguments of auth.
        var auth: [String] = []
        /// Further arguments of the gateway.
        var gateway: [String] = []
        /// Of a notifier; nil: there is none.
        var notifier: [String]?
        var isEmulator = false
    }

    /// - Parameter rules: of the default database.
    static func run(
        rules: JSONValue, _ options: Options = Options(), _ body: @Sendable @escaping (GatewayStack) throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/auth", "--scrypt-log-n", "4"] + options.auth, in: folder)
        let messages = try await ServingProgram(
            "hato-messages",
            [
                "--data", "\(folder.path)/messages", "--auth", auth.address, "--outgoing-key-file",
                "\(folder.path)/admin-key",
            ], in: folder)
        var services = ["--messages", messages.address, "--auth", auth.address]
        var notifier: ServingProgram?
        if let arguments = options.notifier {
            let own = ["--data", "\(folder.path)/notifier"] + services + arguments
            let program = try await ServingProgram("hato-notifier", own, in: folder)
            services += ["--notifier", program.address]
            notifier = program
        }
        let emulator = options.isEmulator ? ["--emulator", "true", "--admin-key-file", "\(folder.path)/admin-key"] : []
        let gateway = try await ServingProgram("hato-gateway", services + emulator + options.gateway, in: folder)
        let stack = GatewayStack(auth: auth, messages: messages, gateway: gateway, notifier: notifier, folder: folder)
        let client = try messages.client()
        _ = try await client.call(
            method: "messages.rules.set", params: ["rules": .string(EncodedJSON(rules).text)])
        await client.close()
        let result: Result<Void, any Error>
        do { result = .success(try await Blocking.run { try body(stack) }) } catch { result = .failure(error) }
        for program in [gateway, notifier, messages, auth].compactMap({ $0 }) { await program.stop() }
        try result.get()
    }

    /// - Parameter arguments: further ones of the gateway.
    static func run(
        rules: JSONValue, _ arguments: [String], _ body: @Sendable @escaping (GatewayStack) throws -> Void
    ) async throws {
        try await run(rules: rules, Options(gateway: arguments), body)
    }

    /// The page of the gateway's metrics, where the arguments have `--metrics-port 0`.
    func metrics() throws -> String {
        let port = gateway.announcement["metricsPort"]?.integer ?? 0
        return try HTTPResponseText.of("GET /metrics", on: PlainSocket("127.0.0.1:\(port)")).body
    }

    /// Reads the metrics until `isTrue`.
    func waitForMetrics(_ what: String, _ isTrue: (String) throws -> Bool) throws {
        let end = ContinuousClock.now + .seconds(120)
        while try !isTrue(try metrics()) {
            guard ContinuousClock.now < end else { throw DeadlineExceeded(what) }
        }
    }

    /// The ID token of a new anonymous account.
    func newToken() throws -> (uid: String, token: String) {
        let socket = try PlainSocket(auth.address)
        try socket.send("auth.signUp", [:])
        let result = try JSONParser.parse(socket.line())["result"]
        guard let uid = result?["uid"]?.string ?? result?["localId"]?.string, let token = result?["idToken"]?.string
        else {
            throw DeadlineExceeded("a token")
        }
        return (uid, token)
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Auth, messages and notifier in one folder, each a program of its own or all in one, and a gateway if it is wanted. A
/// killed program is restarted on the same ports with the same data.
final class FaultStack: Sendable {
    enum Layout: Sendable, CaseIterable {
        /// `hato-auth serve`, `hato-messages serve`, `hato-notifier serve`.
        case apart
        /// `hato-dev`.
        case together
    }

    enum Part: String, Sendable, CaseIterable {
        case auth, messages, notifier, gateway
        case everything = "dev"
    }

    static let rules = """
        {"rules": {".read": "auth != null", ".write": "auth != null",
          "chats": {"$chat": {"messages": {".indexOn": "date"}}}}}
        """

    let administratorKey: String
    private let programs: [Part: (program: Program, arguments: [String])]
    private let ports: [Part: Int]

    /// - Parameter hasGateway: whether a gateway starts with the other programs; `hato-dev` always has one.
    static func run(
        _ layout: Layout, hasGateway: Bool = false, _ body: (FaultStack) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-fault-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let stack = try await FaultStack(layout, folder, hasGateway: hasGateway)
        do {
            try await body(stack)
        } catch {
            // The logs show why; the folder is kept.
            print("fault test failed; its data and logs are in \(folder)")
            await stack.stop()
            throw error
        }
        await stack.stop()
        try FileManager.default.removeItem(atPath: folder)
    }

    private init(_ layout: Layout, _ folder: String, hasGateway: Bool) async throws {
        var (programs, ports): ([Part: (program: Program, arguments: [String])], [Part: Int]) = ([:], [:])
        /// Starts a part on free ports and keeps them for its later runs.
        func start(_ part: Part, _ arguments: [String]) async throws -> JSONObject {
            let program = try Program("hato-\(part.rawValue)", logFile: "\(folder)/\(part.rawValue).log")
            let ready = try await program.start(arguments + (part == .everything ? Self.anyPorts : ["--port", "0"]))
            programs[part] = (program, arguments)
            return ready
        }
        func port(_ address: JSONValue?) throws -> Int {
            guard let port = address?.string?.split(separator: ":").last.flatMap({ Int($0) }) else {
                throw DeadlineExceeded("no address in the ready line of a program")
            }
            return port
        }
        switch layout {
        case .together:
            let ready = try await start(.everything, ["--data", "\(folder)/data", "--exit-with-stdin"])
            for part in [Part.auth, .messages, .notifier, .gateway] { ports[part] = try port(ready[part.rawValue]) }
            administratorKey = try Self.firstLine(of: ready["adminKeyFile"]?.string ?? "")
        case .apart:
            let keys = KeyFiles(folder: folder)
            administratorKey = try Self.firstLine(of: keys.administrator)
            var shared = ["--admin-key-file", keys.administrator, "--exit-with-stdin"]
            for part in [Part.auth, .messages, .notifier] {
                var arguments = ["serve", "--data", "\(folder)/\(part.rawValue)"] + shared + keys.arguments(of: part)
                if part == .notifier { arguments.append("--allow-private-webhooks") }
                if part == .auth { arguments += ["--limit-loopback", "false"] }
                ports[part] = try port(await start(part, arguments)["listening"])
                shared += ["--\(part.rawValue)", "127.0.0.1:\(ports[part] ?? 0)"]
            }
            if hasGateway {
                let services = [Part.auth, .messages].flatMap { ["--\($0.rawValue)", "127.0.0.1:\(ports[$0] ?? 0)"] }
                let arguments = ["serve", "--exit-with-stdin"] + services + keys.arguments(of: .gateway)
                ports[.gateway] = try port(await start(.gateway, arguments)["listening"])
            }
        }
        (self.programs, self.ports) = (programs, ports)
    }

    private static let anyPorts = [
        "--auth-port", "0", "--messages-port", "0", "--notifier-port", "0", "--gateway-port", "0",
    ]

    /// The files of keys of the services.
    private struct KeyFiles {
        let folder: String
        private let key = UUID().uuidString + UUID().uuidString

        init(folder: String) {
            self.folder = folder
            write("admin-key", UUID().uuidString + UUID().uuidString)
            write("messages-key", key + "-of-messages")
            write("notifier-key", key + "-of-notifier")
            write("gateway-key", key + "-of-gateway")
            write(
                "auth-callers.yaml",
                """
                - {name: messages, key: \(key)-of-messages, methods: [auth.follow, auth.unfollow, auth.users.list]}
                - {name: notifier, key: \(key)-of-notifier, methods: [auth.follow, auth.unfollow, auth.sessions.list, auth.users.get]}
                - {name: gateway, key: \(key)-of-gateway, forward: true}
                """)
            write(
                "messages-callers.yaml",
                """
                - name: notifier
                  key: \(key)-of-notifier
                  methods:
                    [messages.follow, messages.get, messages.unfollow, messages.push, messages.set, messages.update]
                  as: true
                - {name: gateway, key: \(key)-of-gateway, forward: true}
                """)
        }

        var administrator: String { "\(folder)/admin-key" }

        func arguments(of part: Part) -> [String] {
            switch part {
            case .everything: []
            case .auth: ["--service-keys-file", "\(folder)/auth-callers.yaml"]
            case .messages:
                [
                    "--service-keys-file", "\(folder)/messages-callers.yaml",
                    "--outgoing-key-file", "\(folder)/messages-key", "--profiles", "default:/users/{uid}",
                ]
            case .notifier, .gateway: ["--outgoing-key-file", "\(folder)/\(part.rawValue)-key"]
            }
        }

        private func write(_ name: String, _ text: String) {
            _ = FileManager.default.createFile(
                atPath: "\(folder)/\(name)", contents: Data((text + "\n").utf8),
                attributes: [.posixPermissions: 0o600])
        }
    }

    private static func firstLine(of file: String) throws -> String {
        let text = try String(contentsOfFile: file, encoding: .utf8)
        return text.split(separator: "\n").first.map(String.init) ?? ""
    }

    func program(_ part: Part) -> Program? { programs[part]?.program }

    /// `kill -9` and a new start; returns when the part is ready again.
    ///
    /// - Parameter failpoints: the faults of the new run.
    func killAndRestart(_ part: Part, failpoints: String? = nil) async throws {
        guard let (program, arguments) = programs[part] else { return }
        await program.kill()
        let places =
            part == .everything
            ? ports.flatMap { ["--\($0.key.rawValue)-port", String($0.value)] } : ["--port", String(ports[part] ?? 0)]
        _ = try await program.start(arguments + places, failpoints: failpoints)
    }

    /// SIGTERM for each program that runs; returns the exit codes.
    @discardableResult
    func stop() async -> [Part: Int32] {
        var codes: [Part: Int32] = [:]
        for (part, (program, _)) in programs { codes[part] = await program.stop() }
        return codes
    }

    /// Where a part listens; 0 if there is no such part.
    func port(of part: Part) -> Int { ports[part] ?? 0 }

    func client(_ part: Part) -> RPCClient {
        var configuration = RPCClientConfiguration(host: "127.0.0.1", port: ports[part] ?? 0)
        configuration.reconnectDelayMax = .milliseconds(100)
        return RPCClient(configuration.with(credential: administratorKey))
    }
}

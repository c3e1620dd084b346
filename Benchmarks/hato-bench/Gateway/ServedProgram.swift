import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// The `serve` of a program on a free port, in a process of its own. It ends with this object.
final class ServedProgram: Sendable {
    let port: Int
    let processIdentifier: Int32
    private let process: Process
    private let input: Pipe

    /// - Parameter arguments: those besides the port.
    init(_ name: String, _ arguments: [String]) throws {
        guard let path = BuiltProgram.path(name) else { throw BenchError("\(name) is not built") }
        let (process, input, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = ["serve", "--exit-with-stdin", "--port", "0"] + arguments
        process.standardInput = input
        process.standardOutput = output
        // What it says when it does not start.
        process.standardError = FileHandle.standardError
        try process.run()
        let line = output.fileHandleForReading.availableData
        guard let text = (try? JSONParser.parse(Array(line)))?.object?["listening"]?.string,
            let port = text.split(separator: ":").last.flatMap({ Int($0) })
        else {
            process.terminate()
            throw BenchError("\(name) did not start")
        }
        (self.process, self.input, self.port) = (process, input, port)
        processIdentifier = process.processIdentifier
    }

    var address: String { "127.0.0.1:\(port)" }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    /// A gateway in front of services.
    ///
    /// - Parameter tls: the files of the certificate and of its key; nil: plain HTTP.
    static func gateway(
        before stack: TestStack, messages: String? = nil, _ folder: PushFolder,
        tls: (certificate: String, key: String)? = nil
    ) throws -> ServedProgram {
        let key = try folder.file("key-\(UUID().uuidString)", stack.administratorKey + "\n")
        return try ServedProgram(
            "hato-gateway",
            [
                "--outgoing-key-file", key, "--messages", messages ?? address(of: .messages, stack), "--auth",
                address(of: .auth, stack), "--access-log", "false",
                // Every client here has the same address.
                "--connections-per-address-max", "100000", "--requests-per-address-second-max", "0",
                // Clients here send no pong, and wait idle for each other's turns.
                "--ping-ms", "3600000", "--silence-ms-max", "3600000", "--idle-ms-max", "3600000",
                "--head-ms-max", "3600000",
                // Two files for each of 8,000 sockets, of 20,000, a usual hard limit.
                "--open-files-reserve", "1024",
            ] + (tls.map { ["--tls-certificate", $0.certificate, "--tls-key", $0.key] } ?? []))
    }

    /// Messages of a process of their own, for users of the stack: what it holds for a client is not beside the other
    /// services' memory. Users may read and write everything.
    static func messages(of stack: TestStack, _ folder: PushFolder) async throws -> ServedProgram {
        let key = try folder.file("key-\(UUID().uuidString)", stack.administratorKey + "\n")
        let program = try ServedProgram(
            "hato-messages",
            [
                "--admin-key-file", key, "--outgoing-key-file", key, "--auth", address(of: .auth, stack), "--data",
                folder.path("messages-\(UUID().uuidString)"),
            ])
        guard let configuration = RPCClientConfiguration(address: program.address) else {
            throw BenchError("\(program.address) is no address")
        }
        let client = RPCClient(configuration.with(credential: stack.administratorKey))
        let rules: JSONValue = ["rules": [".read": "auth != null", ".write": "auth != null"]]
        _ = try await client.call(
            method: "messages.rules.set", params: ["rules": .string(EncodedJSON(rules).text)])
        await client.close()
        return program
    }

    private static func address(of service: TestStack.Service, _ stack: TestStack) -> String {
        let configuration = stack.configuration(service)
        return "\(configuration.host):\(configuration.port)"
    }
}

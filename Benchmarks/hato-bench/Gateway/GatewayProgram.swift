import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// A gateway in a process of its own, in front of the services of a stack. It ends with this object.
final class GatewayProgram: Sendable {
    let port: Int
    let processIdentifier: Int32
    private let process: Process
    private let input: Pipe

    /// - Parameter tls: the files of the certificate and of its key; nil: plain HTTP.
    init(before stack: TestStack, _ folder: PushFolder, tls: (certificate: String, key: String)? = nil) throws {
        guard let path = BuiltProgram.path("hato-gateway") else { throw BenchError("hato-gateway is not built") }
        let key = try folder.file("key-\(UUID().uuidString)", stack.administratorKey + "\n")
        let (process, input, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments =
            [
                "serve", "--exit-with-stdin", "--port", "0", "--outgoing-key-file", key, "--messages",
                Self.address(of: .messages, stack), "--auth", Self.address(of: .auth, stack), "--access-log", "false",
                // Every client here has the same address.
                "--connections-per-address-max", "100000", "--requests-per-address-second-max", "0",
                // Clients here send no pong, and wait idle for each other's turns.
                "--ping-ms", "3600000", "--silence-ms-max", "3600000", "--idle-ms-max", "3600000",
                "--head-ms-max", "3600000",
            ] + (tls.map { ["--tls-certificate", $0.certificate, "--tls-key", $0.key] } ?? [])
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
            throw BenchError("hato-gateway did not start")
        }
        (self.process, self.input, self.port) = (process, input, port)
        processIdentifier = process.processIdentifier
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    private static func address(of service: TestStack.Service, _ stack: TestStack) -> String {
        let configuration = stack.configuration(service)
        return "\(configuration.host):\(configuration.port)"
    }
}

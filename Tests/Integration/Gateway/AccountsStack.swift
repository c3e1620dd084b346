import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Auth with a gateway in front of it, as built programs. There are no messages.
struct AccountsStack {
    let auth: ServingProgram
    let gateway: ServingProgram
    private let folder: TemporaryFolder

    /// - Parameters:
    ///   - arguments: further ones of the gateway.
    ///   - auth: further ones of auth.
    static func run(
        _ arguments: [String] = [], auth: [String] = [], _ body: @escaping (AccountsStack) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let service = try await startAuth(auth, in: folder)
        let gateway = try await ServingProgram(
            "hato-gateway", ["--messages", "127.0.0.1:1", "--auth", service.address] + arguments, in: folder)
        let stack = AccountsStack(auth: service, gateway: gateway, folder: folder)
        let result: Result<Void, any Error>
        do { result = .success(try await body(stack)) } catch { result = .failure(error) }
        for program in [gateway, service] where program.isRunning { await program.stop() }
        try result.get()
    }

    private static func startAuth(_ arguments: [String], in folder: TemporaryFolder) async throws -> ServingProgram {
        try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/auth", "--scrypt-log-n", "4"] + arguments, in: folder)
    }

    /// Auth once more, behind the same address.
    func startAuthAgain() async throws -> ServingProgram {
        try await Self.startAuth(["--port", "\(auth.port)"], in: folder)
    }

    func client() throws -> AccountsClient { AccountsClient(socket: try PlainSocket(gateway.address)) }
}

/// One connection to the accounts of a gateway.
struct AccountsClient {
    static let administrator = ["Authorization: Bearer \(ServingProgram.administratorKey)"]

    let socket: PlainSocket

    /// A request of a client to a path of version 1, with an API key.
    func post(_ operation: String, _ body: JSONValue, _ headers: [String] = []) throws -> HTTPResponseText {
        try send("POST /v1/accounts:\(operation)?key=fake", body, headers)
    }

    /// A request of an administrator to a path of the project.
    func manage(_ request: String, _ body: JSONValue? = nil) throws -> HTTPResponseText {
        let words = request.split(separator: " ")
        return try send("\(words[0]) /v1/projects/hato\(words[1])", body, Self.administrator)
    }

    func send(_ request: String, _ body: JSONValue? = nil, _ headers: [String] = []) throws -> HTTPResponseText {
        let text = body.map { EncodedJSON($0).text }
        return try HTTPResponseText.of(
            request, headers + (text == nil ? [] : ["Content-Type: application/json"]), body: text, on: socket)
    }
}

extension HTTPResponseText {
    /// The message of an error of the account dialect.
    var message: String? { json?["error"]?["message"]?.string }

    /// A member of the body that is a text.
    func text(_ name: String) -> String { json?[name]?.string ?? "" }
}

/// Listens, and never responds.
final class SilentService: Sendable {
    let address: String
    private let descriptor: Int32

    init() throws {
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        descriptor = socket(AF_INET, kind, 0)
        var own = sockaddr_in()
        own.sin_family = sa_family_t(AF_INET)
        own.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let code = withUnsafeMutablePointer(to: &own) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) | listen(descriptor, 16) | getsockname(descriptor, $0, &size)
            }
        }
        guard code == 0 else { throw DeadlineExceeded("a listening socket: \(String(cString: strerror(errno)))") }
        address = "127.0.0.1:\(UInt16(bigEndian: own.sin_port))"
    }

    deinit { close(descriptor) }
}

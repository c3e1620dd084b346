import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Connections that only take slots, on a service with few open files.
@Suite(.timeLimit(.minutes(10)))
struct ConnectionFloods {
    @Test func clientWithACredentialConnectsAndTheStoreKeepsItsFiles() async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/data"], in: folder, with: .init(openFiles: 256))
        let log = try folder.text("hato-auth.log")
        #expect(log.contains("open files"), "\(log)")
        #expect(log.contains("connections-max is lowered to what the limit of open files allows"), "\(log)")
        var silent: [SilentPeer] = []
        let client = try auth.client()
        for number in 0..<400 {
            silent.append(try SilentPeer(from: "127.0.1.\(number % 200 + 1)", to: auth.port))
            // A burst is smaller than the reserve of files: a connection that is closed for another keeps its file
            // until its event loop closes it.
            if number % 25 == 24 { _ = try await client.call(method: "service.health") }
        }
        for number in 0..<50 {
            let session = try await client.call(method: "auth.signUp")
            #expect(session["uid"]?.string?.isEmpty == false, "\(number)")
        }
        #expect(try await client.call(method: "service.health")["checks"] != nil)
        let refusal = try #require(silent[0].line())
        let answer = try JSONParser.parse(refusal)
        #expect(answer["id"] == .null)
        #expect(answer["error"]?["data"]?["reason"] == "too_many_connections")
        let after = try folder.text("hato-auth.log")
        #expect(!after.contains("could not be accepted"), "\(after)")
        // Each kind of notice at most once a second, however many connections came.
        let notices = after.split(separator: "\n").count {
            $0.contains("longest silent") || $0.contains("refused a conn")
        }
        #expect(notices < 100, "\(after)")
        for peer in silent { peer.close() }
        await client.close()
        await auth.stop()
    }
}

/// A connection that sends nothing.
private struct SilentPeer {
    private let descriptor: Int32

    init(from source: String, to port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try Self.withAddress(source, 0) { try Self.check(bind(descriptor, $0, $1)) }
        try Self.withAddress("127.0.0.1", UInt16(port)) { try Self.check(connect(descriptor, $0, $1)) }
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    /// The first line it gets; nil if there is none.
    func line() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count > 0 ? bytes[..<count].split(separator: UInt8(ascii: "\n")).first.map { Array($0) } : nil
    }

    func close() {
        #if canImport(Glibc)
            _ = Glibc.close(descriptor)
        #elseif canImport(Musl)
            _ = Musl.close(descriptor)
        #else
            _ = Darwin.close(descriptor)
        #endif
    }

    private static func withAddress(
        _ text: String, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Void
    ) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        _ = inet_pton(AF_INET, text, &address.sin_addr)
        try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func check(_ result: Int32) throws {
        if result != 0 { throw DeadlineExceeded("a connection: errno \(errno)") }
    }
}

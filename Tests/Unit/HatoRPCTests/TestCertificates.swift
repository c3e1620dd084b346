import Foundation

/// An authority, a server's and a client's certificate in a temporary folder, made with the openssl command.
final class TestCertificates: Sendable {
    private static let command = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    static var isPossible: Bool { command != nil }

    private let folder: URL

    init() async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("subjectAltName=DNS:localhost,IP:127.0.0.1\n".utf8).write(to: folder.appendingPathComponent("names"))
        try Data("subjectAltName=DNS:localhost\n".utf8).write(to: folder.appendingPathComponent("onlyName"))
        try await openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"
        )
        for name in ["server", "client", "named"] {
            let names = name == "named" ? "onlyName" : "names"
            try await openssl(
                "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=\(name) -keyout \(name).key -out \(name).csr"
            )
            try await openssl(
                "x509 -req -in \(name).csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile \(names) -out \(name).pem"
            )
        }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func openssl(_ arguments: String) async throws {
        let process = Process()
        process.executableURL = Self.command.map { URL(fileURLWithPath: $0) }
        process.arguments = arguments.split(separator: " ").map(String.init)
        process.currentDirectoryURL = folder
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        guard status == 0 else { throw Missing(what: "openssl \(arguments): \(status)") }
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import TestCertificates
import Testing

/// The effects of limits, defaults and the environment on a built program.
@Suite(.timeLimit(.minutes(10)))
struct RunningPrograms {
    @Test func softLimitOfOpenFilesIsRaisedToTheHardOne() async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/data"], in: folder, with: .init(openFiles: 600, softOpenFiles: 100))
        let line = try #require(auth.log.split(separator: "\n").first { $0.contains("open files") })
        #expect(line.contains("limit=600") && line.contains("before=100"), "\(line)")
        // More than the soft limit has.
        let peers = try (0..<150).map { _ in try PlainSocket(auth.address) }
        for peer in peers { try peer.call("service.health", [:]) }
        #expect(!auth.log.contains("could not be accepted"), "\(auth.log)")
        for peer in peers { peer.end() }
        await auth.stop()
    }

    /// The listening socket stays readable while files are missing: the pause and the notice are part of the server.
    @Test func acceptThatFailsForWantOfFilesIsNoticedAndAcceptingGoesOn() async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth",
            [
                "--data", "\(folder.path)/data", "--open-files-reserve", "0",
                "--connections-without-credential-percent-max", "100",
            ], in: folder, with: .init(openFiles: 200))
        let peers = try (0..<220).map { _ in try PlainSocket(auth.address) }
        try await eventually("an accept has failed") { auth.log.contains("could not be accepted") }
        for peer in peers { peer.end() }
        let next = try PlainSocket(auth.address)
        try next.call("service.health", [:])
        await auth.stop()
    }

    @Test func metricsAreForThisMachineUnlessSaidOtherwise() async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/data", "--metrics-port", "0"], in: folder)
        let port = try #require(auth.announcement["metricsPort"]?.integer)
        _ = try PlainSocket("127.0.0.1:\(port)")
        // All of 127.0.0.0/8 is this machine: a socket for every address would accept this, too.
        #expect(throws: DeadlineExceeded.self) { try PlainSocket("127.0.0.2:\(port)") }
        await auth.stop()
    }

    /// In the environment of `serve`, as a container's health check.
    @Test func healthCheckOfAServiceWithTLSReadsTheVariables() async throws {
        let folder = try TemporaryFolder()
        let certificates = try TestCertificates(["server": [.dns("auth")]])
        let environment = [
            "HATO_TLS_CERTIFICATE": certificates.path("server.pem"), "HATO_TLS_KEY": certificates.path("server.key"),
            "HATO_TLS_CA": certificates.path("ca.pem"),
            "HATO_TLS_SERVER_NAME": "auth",
        ]
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/data"], in: folder, with: .init(environment: environment))
        let healthy = try await Executable.run("hato-auth", ["health", "--server", auth.address], environment)
        #expect(healthy.code == 0, "\(healthy.error)")
        let plain = try await Executable.run("hato-auth", ["health", "--server", auth.address])
        #expect(plain.code != 0, "\(plain.text)")
        await auth.stop()
    }

    // MARK: memory-bytes

    private static let memory = 480 << 20

    /// The settings that are derived from `memory-bytes`, at 480 MiB.
    @Test(
        arguments: [
            ("hato-auth", [:], ["hashing-threads": 2]),
            (
                "hato-messages", ["--auth": "127.0.0.1:1"],
                [
                    "listeners-client-bytes-max": 15 << 20, "listeners-service-bytes-max": 60 << 20,
                    "on-disconnect-client-bytes-max": 5 << 20, "on-disconnect-service-bytes-max": 20 << 20,
                    "write-values-max": 327_680,
                ]
            ),
            (
                "hato-notifier", ["--auth": "127.0.0.1:1", "--messages": "127.0.0.1:1"],
                ["trigger-bytes-max": 80 << 20]
            ),
        ] as [(String, [String: String], [String: Int])])
    func settingsFollowFromMemoryBytes(
        _ program: String, _ peers: [String: String], _ expected: [String: Int]
    ) async throws {
        let folder = try TemporaryFolder()
        let arguments = ["--data", "\(folder.path)/data", "--memory-bytes", "\(Self.memory)"]
        let service = try await ServingProgram(
            program, arguments + peers.flatMap { [$0.key, $0.value] }, in: folder)
        let client = try service.client()
        let settings = try await client.call(method: "service.config")
        for (name, value) in expected {
            let setting = settings[name]
            if name == "hashing-threads" {
                let shown = setting?["value"]?.string.flatMap { Int($0) } ?? 0
                #expect((1...value).contains(shown), "\(name): \(shown)")
            } else {
                #expect(setting?["value"] == .string("\(value)"), "\(name)")
            }
            #expect(setting?["source"] == "memory-bytes", "\(name)")
        }
        await client.close()
        await service.stop()
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of auth between the steps of a mail: each code that a caller got a response for is mailed at least once,
/// and no mail has a code that is not in the store.
@Suite("Mails while auth is killed", .serialized, .timeLimit(.minutes(30)))
struct MailKillTests {
    /// The failpoints, and at which passing a run is killed there: a start passes those of a commit some times.
    private static let places = [
        ("commit.beforeSync", 8...25), ("commit.afterSync", 8...25), ("commit.beforeAnswer", 8...25),
        ("mail.beforeSend", 1...10), ("mail.afterSend", 1...10),
    ]

    @Test func everyCodeIsMailedAndNoneWithoutItsRow() async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        print("mail kill test: HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        let auth = try LoneAuth()
        // The first commits make the store.
        try await auth.start()
        await auth.program.stop()
        for _ in 0..<FaultSettings.kills {
            for (name, passings) in Self.places.shuffled(using: &random) {
                let count = Int.random(in: passings, using: &random)
                try await auth.start(failpoints: "\(name)=kill@\(count)")
                let requests = await auth.requestUntilItDies()
                #expect(await auth.program.diedAtFailpoint(), "\(name)=kill@\(count)")
                try await auth.start()
                try await auth.check(requests, "\(name)=kill@\(count)")
                await auth.program.stop()
            }
        }
        try FileManager.default.removeItem(atPath: auth.folder)
    }
}

/// `hato-auth serve` alone, whose mails go into a folder.
private final class LoneAuth {
    struct Request {
        var address: String
        /// Whether there was a response.
        var isAcknowledged: Bool
    }

    let folder: String
    let program: Program
    private let key = UUID().uuidString + UUID().uuidString
    private var port = 0
    private var count = 0

    init() throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("hato-mail-fault-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data("\(key)\n".utf8), attributes: [.posixPermissions: 0o600])
        program = try Program("hato-auth", logFile: "\(folder)/auth.log")
    }

    func start(failpoints: String? = nil) async throws {
        let ready = try await program.start(
            [
                "serve", "--data", "\(folder)/auth", "--admin-key-file", "\(folder)/admin-key", "--exit-with-stdin",
                "--mailbox", "\(folder)/mailbox", "--limit-loopback", "false", "--port", "0",
            ], failpoints: failpoints)
        port = ready["listening"]?.string?.split(separator: ":").last.flatMap { Int($0) } ?? 0
    }

    private var client: RPCClient {
        RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: key))
    }

    func requestUntilItDies() async -> [Request] {
        let client = client
        var requests: [Request] = []
        var isAlive = true
        while isAlive {
            count += 1
            var request = Auth.Code.Request(type: .signIn)
            request.email = "a\(count)@example.com"
            do { _ = try await client.call(request) } catch { isAlive = false }
            requests.append(Request(address: "a\(count)@example.com", isAcknowledged: isAlive))
        }
        await client.close()
        return requests
    }

    func check(_ requests: [Request], _ name: String) async throws {
        let client = client
        _ = try await waiting(for: "the end of the queue") {
            try await client.call(Auth.Mail.List()).mails.isEmpty ? true : nil
        }
        var last: [String: Auth.Mailbox.Mail] = [:]
        var list = Auth.Mailbox.List()
        repeat {
            let page = try await client.call(list)
            for mail in page.mails { last[mail.to] = mail }
            list.after = page.after
        } while list.after != nil
        for request in requests {
            guard let mail = last[request.address] else {
                #expect(!request.isAcknowledged, "\(name): \(request.address) got no mail")
                continue
            }
            let found = try await client.call(Auth.Code.Check(code: mail.code))
            #expect(found.type == .signIn, "\(name): \(request.address)")
        }
        await client.close()
    }
}

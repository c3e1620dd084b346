import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase

/// `hato-notifier serve` alone, with devices that are registered at a receiver: by their names, phones by their tokens.
final class LoneNotifier {
    let folder: String
    let program: Program
    private let receiver: RepeatingReceiver
    private let key = UUID().uuidString + UUID().uuidString
    private var port = 0
    private(set) var devices: [String] = []

    init(_ receiver: RepeatingReceiver) throws {
        self.receiver = receiver
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("hato-push-fault-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data("\(key)\n".utf8), attributes: [.posixPermissions: 0o600])
        program = try Program("hato-notifier", logFile: "\(folder)/notifier.log")
    }

    /// - Parameters:
    ///   - page: how many deliveries are made at once; nil: as many as by default.
    ///   - hasMails: whether e-mails go soon.
    func start(failpoints: String? = nil, page: Int? = nil, hasMails: Bool = false) async throws {
        // As little as may be.
        let mails = hasMails ? ["--digest-wait-seconds", "1", "--digest-pause-seconds", "1"] : []
        // Neither auth nor messages is needed by what an administrator sends.
        let pages = page.map { ["--deliveries-at-once-max", "\($0)"] } ?? []
        let ready = try await program.start(
            [
                "serve", "--data", "\(folder)/notifier", "--admin-key-file", "\(folder)/admin-key",
                "--exit-with-stdin", "--auth", "127.0.0.1:1", "--messages", "127.0.0.1:1",
                "--allow-private-webhooks", "--port", "0", "--apps-file", receiver.firebase.appsFile,
                // Each push of a phone has its own text.
                "--device-interval-ms", "0", "--user-interval-ms", "0",
            ] + pages + mails, failpoints: failpoints)
        port = ready["listening"]?.string?.split(separator: ":").last.flatMap { Int($0) } ?? 0
    }

    var client: RPCClient {
        RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: key))
    }

    /// Registers a device of a user for each name.
    func registerDevices(_ names: [String], of uid: String) async throws {
        let client = client
        for name in names {
            devices.append(try await client.call(Notifier.Devices.Register(url: receiver.url(name), uid: uid)).device)
        }
        await client.close()
    }

    /// Registers a phone of a user for each token: pushes to them wait in the queue of their provider.
    func registerPhones(_ tokens: [String], of uid: String) async throws {
        let client = client
        for token in tokens {
            var phone = Notifier.Devices.Register(platform: .fcm)
            (phone.token, phone.uid) = (token, uid)
            _ = try await client.call(phone)
            devices.append(token)
        }
        await client.close()
    }

    /// Registers a mailbox of a user, whose address is verified.
    func registerMailbox(of uid: String) async throws {
        let client = client
        var params = Notifier.Devices.Register(platform: .email).members
        params["auth"] = .string(key)
        params["as"] = [
            "uid": .string(uid), "token": ["email": .string("\(uid)@example.com"), "email_verified": true],
        ]
        _ = try await client.call(method: Notifier.Devices.Register.method, params: params)
        await client.close()
    }

    /// Kills the program when so many further deliveries have come.
    func kill(after count: Int) -> Task<Void, Never> {
        let (program, receiver) = (program, receiver)
        let goal = receiver.count + count
        return Task {
            try? await eventually("\(goal) deliveries", within: FaultSettings.patience) { receiver.count >= goal }
            await program.kill()
        }
    }
}

/// A moment at which a program is killed.
struct KillPlace {
    /// That of a failpoint; nil: it is killed from outside, after some deliveries.
    var name: String?
    /// At which passing, or after how many deliveries.
    var count: Int

    /// For the environment of the program.
    var failpoints: String? { name.map { "\($0)=kill@\(count)" } }
    var text: String { failpoints ?? "kill after \(count) deliveries" }
}

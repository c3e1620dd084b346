import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Backups of running services, and their restoration: `serve`, `backup`, `restore`, `serve`.
@Suite(.timeLimit(.minutes(10)))
struct Restoring {
    /// Peers that never respond: these tests need none.
    private static let noAuth = ["--auth", "127.0.0.1:1"]
    private static let noPeers = noAuth + ["--messages", "127.0.0.1:1"]

    /// Serves on `data`, backups going to the folder `backups` beside it.
    private func serve<Outcome>(
        _ service: String, _ data: String, in folder: TemporaryFolder, _ arguments: [String] = [],
        _ body: (ServingProgram, RPCClient) async throws -> Outcome
    ) async throws -> Outcome {
        let own = ["--data", "\(folder.path)/\(data)", "--backup-dir", "\(folder.path)/backups"]
        let program = try await ServingProgram("hato-\(service)", own + arguments, in: folder)
        let client = try program.client()
        let outcome: Outcome
        do { outcome = try await body(program, client) } catch {
            await program.stop()
            throw error
        }
        await client.close()
        await program.stop()
        return outcome
    }

    private func restore(
        _ service: String, _ name: String, to data: String, in folder: TemporaryFolder, _ arguments: [String] = []
    ) async throws -> Executable.Ended {
        let own = ["restore", "\(folder.path)/backups/\(name)", "--data", "\(folder.path)/\(data)"]
        return try await Executable.run("hato-\(service)", own + arguments)
    }

    private func backup(_ service: String, _ name: String, _ program: ServingProgram, in folder: TemporaryFolder)
        async throws -> JSONValue
    {
        let ended = try await Executable.run(
            "hato-\(service)", ["backup", name],
            ["HATO_\(service.uppercased())_SERVER": program.address, "HATO_ADMIN_KEY_FILE": "\(folder.path)/admin-key"])
        #expect(ended.code == 0, "\(ended.error)")
        return ended.output
    }

    private func refusal<Outcome>(_ body: () async throws -> Outcome) async -> RPCError? {
        do { _ = try await body() } catch { return error as? RPCError }
        return nil
    }

    @Test func messagesAreAsTheyWereAtTheBackup() async throws {
        let folder = try TemporaryFolder()
        let (atBackup, position) = try await serve("messages", "data", in: folder, Self.noAuth) { program, client in
            _ = try await client.call(method: "messages.rules.set", params: ["rules": #"{"rules": {".read": true}}"#])
            _ = try await client.call(
                method: "messages.set", params: ["path": "/a", "value": ["text": "ただいま", ".priority": 1]])
            let answer = try await backup("messages", "first", program, in: folder)
            let state = try await client.call(method: "messages.get", params: ["path": "/", "export": true])
            #expect(answer["version"] == state["version"])
            #expect(answer["name"] == "first")

            let again = await refusal {
                try await client.call(method: "messages.backup", params: ["name": "first"])
            }
            #expect(again?.code == .alreadyExists)
            let held = try await Executable.run(
                "hato-messages", ["restore", "\(folder.path)/backups/first", "--data", "\(folder.path)/data"])
            #expect(held.code == 74)
            #expect(held.error.contains("is in use by a running service"), "\(held.error)")

            for number in 0..<20 {
                _ = try await client.call(
                    method: "messages.set", params: ["path": "/b", "value": .number(Double(number))])
            }
            let stats = try await client.call(Messages.Stats())
            return (state, stats)
        }

        let restored = try await restore("messages", "first", to: "restored", in: folder)
        #expect(restored.code == 0, "\(restored.error)")
        #expect(restored.output["version"] == atBackup["version"])
        let twice = try await restore("messages", "first", to: "restored", in: folder)
        #expect(twice.code == 74)
        #expect(twice.error.contains("is not empty"), "\(twice.error)")

        try await serve("messages", "restored", in: folder, Self.noAuth) { _, client in
            let state = try await client.call(method: "messages.get", params: ["path": "/", "export": true])
            #expect(state == atBackup)
            #expect(try await client.call(Messages.Stats()).epoch != position.epoch)
            // Versions differ from here on: no client may continue from a position of the other history.
            for version in [position.version, UInt64(1)] {
                let follow = await refusal {
                    try await client.subscribe(
                        method: "messages.follow",
                        params: ["after": .number(Double(version)), "epoch": .string(position.epoch)])
                }
                #expect(follow?.reason == "unknown_version")
            }
            #expect(
                try await client.call(method: "messages.get", params: ["path": "/a/text", "as": .null])["value"]
                    == "ただいま")
        }
    }

    @Test func serviceOfHatoDevIsRestored() async throws {
        let folder = try TemporaryFolder()
        let arguments = ["--data", "\(folder.path)/data", "--backup-dir", "\(folder.path)/backups"]
        let stack = try await TestStack.start(arguments)
        var client = stack.client(.messages, as: .administrator)
        _ = try await client.call(method: "messages.set", params: ["path": "/a", "value": "ただいま"])
        _ = try await client.call(method: "messages.backup", params: ["name": "first"])
        _ = try await client.call(method: "messages.set", params: ["path": "/a", "value": "いってきます"])
        await client.close()
        await stack.stop()
        try FileManager.default.moveItem(atPath: "\(folder.path)/data/messages", toPath: "\(folder.path)/old")
        let restored = try await Executable.run(
            "hato-messages",
            ["restore", "\(folder.path)/backups/messages/first", "--data", "\(folder.path)/data/messages"])
        #expect(restored.code == 0, "\(restored.error)")
        let again = try await TestStack.start(arguments)
        client = again.client(.messages, as: .administrator)
        #expect(try await client.call(method: "messages.get", params: ["path": "/a"])["value"] == "ただいま")
        await client.close()
        await again.stop()
        // A store of a former version, in the data folder itself, is found there.
        try FileManager.default.moveItem(
            atPath: "\(folder.path)/data/messages/store", toPath: "\(folder.path)/store")
        try FileManager.default.removeItem(atPath: "\(folder.path)/data/messages")
        try FileManager.default.moveItem(atPath: "\(folder.path)/store", toPath: "\(folder.path)/data/messages")
        let former = try await TestStack.start(arguments)
        client = former.client(.messages, as: .administrator)
        #expect(try await client.call(method: "messages.get", params: ["path": "/a"])["value"] == "ただいま")
        await client.close()
        await former.stop()
    }

    @Test func accountsTokensAndKeysAreAsTheyWereAtTheBackup() async throws {
        let folder = try TemporaryFolder()
        let quick = ["--scrypt-log-n", "4", "--scrypt-p", "1"]
        let (early, late) = try await serve("auth", "data", in: folder, quick) { program, client in
            let early = try #require(
                try await client.call(
                    Auth.SignUp(email: "masuo@example.com", password: "sazae-and-friends", displayName: "マスオさん")
                ).session)
            let answer = try await backup("auth", "first", program, in: folder)
            #expect(answer["name"] == "first")
            #expect((answer["version"]?.number ?? 0) > 0)
            for name in ["../x", ".x", ""] {
                let wrong = await refusal {
                    try await client.call(method: "auth.backup", params: ["name": .string(name)])
                }
                #expect(wrong?.code == .invalidArgument)
            }
            let user = await refusal {
                try await client.call(
                    method: "auth.backup", params: ["name": "second"], credential: early.idToken)
            }
            #expect(user?.code == .permissionDenied)
            let late = try #require(
                try await client.call(
                    Auth.SignUp(email: "katsuo@example.com", password: "baseball-after-school", displayName: "カツオ")
                ).session)
            return (early, late)
        }

        let foreign = try await restore("notifier", "first", to: "restored", in: folder)
        #expect(foreign.code == 74)
        #expect(foreign.error.contains("is a backup of auth, not of notifier"), "\(foreign.error)")
        let restored = try await restore("auth", "first", to: "restored", in: folder)
        #expect(restored.code == 0, "\(restored.error)")
        let kept = try await restore("auth", "first", to: "kept", in: folder, ["--keep-sessions"])
        #expect(kept.code == 0, "\(kept.error)")

        try await serve("auth", "kept", in: folder, quick) { _, client in
            try await expectAccount(of: early, client)
            let own = try await client.call(method: "auth.account.get", credential: early.idToken)
            #expect(own["email"] == "masuo@example.com")
            #expect(try await client.call(Auth.Refresh(refreshToken: early.refreshToken)).uid == early.uid)
            #expect(await refusal { try await client.call(Auth.Refresh(refreshToken: late.refreshToken)) } != nil)
        }
        // What was ended after the backup is not known: all sessions end, and the keys are new.
        try await serve("auth", "restored", in: folder, quick) { _, client in
            try await expectAccount(of: early, client)
            let token = await refusal {
                try await client.call(method: "auth.account.get", credential: early.idToken)
            }
            #expect(token?.reason == "INVALID_ID_TOKEN")
            let refresh = await refusal { try await client.call(Auth.Refresh(refreshToken: early.refreshToken)) }
            #expect(refresh?.reason == "TOKEN_EXPIRED")
            let sessions = try await client.call(
                method: "auth.sessions.list", params: ["uid": .string(early.uid)])
            #expect(sessions["sessions"]?.array?.count == 1, "that of the sign-in above")
        }
    }

    private func expectAccount(of session: Auth.Session, _ client: RPCClient) async throws {
        let users = try await client.call(method: "auth.users.list")
        #expect(users["users"]?.array?.map { $0["uid"] } == [.string(session.uid)])
        let signedIn = try await client.call(
            Auth.SignIn(email: "masuo@example.com", password: "sazae-and-friends"))
        #expect(signedIn.uid == session.uid)
    }

    @Test func devicesAreAsTheyWereAtTheBackup() async throws {
        let folder = try TemporaryFolder()
        let arguments = Self.noPeers + ["--allow-private-webhooks"]
        func register(_ uid: String, _ client: RPCClient) async throws {
            _ = try await client.call(
                method: "notifier.devices.register",
                params: ["platform": "webhook", "url": "http://127.0.0.1:9/hook", "uid": .string(uid)])
        }
        func devices(_ uid: String, _ client: RPCClient) async throws -> JSONValue {
            try await client.call(method: "notifier.devices.list", params: ["uid": .string(uid)])
        }
        let before = try await serve("notifier", "data", in: folder, arguments) { program, client in
            try await register("masuo", client)
            let before = try await devices("masuo", client)
            let answer = try await backup("notifier", "first", program, in: folder)
            #expect(answer["name"] == "first")
            #expect((answer["version"]?.number ?? 0) > 0)
            try await register("katsuo", client)
            return before
        }
        #expect(before["devices"]?.array?.count == 1)
        let restored = try await restore("notifier", "first", to: "restored", in: folder)
        #expect(restored.code == 0, "\(restored.error)")
        try await serve("notifier", "restored", in: folder, arguments) { _, client in
            let (known, unknown) = (try await devices("masuo", client), try await devices("katsuo", client))
            #expect(known == before)
            #expect(unknown["devices"] == [])
        }
    }
}

import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The extension of a chat app sends replies, and has no screen for signing in.
@Suite("チャットアプリを開かずに返信する(TodayExtension)", .timeLimit(.minutes(10)))
struct RepliesFromAWidget {
    /// Sends a reply to the inbox of a user as the extension does, and returns what its owner reads.
    private func reply(
        _ text: String, as session: Auth.Session, to owner: Auth.Session, _ stack: TestStack
    ) async throws -> JSONValue {
        let client = stack.client(.auth, as: .user(idToken: session.idToken))
        let name = try await client.call(Auth.Account.Get()).displayName ?? "extension-user"
        await client.close()
        let path = try TreePath("/users/\(owner.uid)/messages")
        let writer = stack.client(.messages, as: .user(idToken: session.idToken))
        let pushed = try await writer.call(
            Messages.Push(
                path: path,
                value: [
                    "date": [".sv": "timestamp"], "senderId": .string(session.uid), "senderName": .string(name),
                    "text": .string(text),
                ]))
        await writer.close()
        let reader = stack.client(.messages, as: .user(idToken: owner.idToken))
        let read = try await reader.call(
            Messages.Get(path: try TreePath("/users/\(owner.uid)/messages/\(pushed.key)")))
        await reader.close()
        return read.value
    }

    @Test func theWidgetGetsATokenWithoutAnAccount() async throws {
        try await TestStack.run(["--rules", "chat"]) { stack in
            let auth = stack.client(.auth)
            let masuo = try #require(try await auth.call(Auth.SignUp(displayName: "マスオさん")).session)
            let widget = try #require(try await auth.call(Auth.SignUp()).session)
            #expect(!widget.idToken.isEmpty && widget.isNewUser && widget.uid != masuo.uid)
            let account = try await auth.call(Auth.Account.Get(), credential: widget.idToken)
            #expect(account.email == nil && account.username == nil && account.displayName == nil)
            #expect(account.providerUserInfo.isEmpty)
            let anonymous = try await reply("いまから帰ります", as: widget, to: masuo, stack)
            #expect(anonymous["senderName"] == "extension-user" && anonymous["senderId"] == .string(widget.uid))
            #expect(anonymous["text"] == "いまから帰ります")
            let named = try await reply("おかえり", as: masuo, to: masuo, stack)
            #expect(named["senderName"] == "マスオさん")
            await auth.close()
        }
    }

    /// A device that refreshes once an hour, and keeps its token when the response is lost.
    private struct Device {
        private(set) var session: Auth.Session
        /// How many tokens in a row had a lost response, up to the one before this one.
        private var lostInARow = 0
        private var isRepeated = false

        init(_ session: Auth.Session) { self.session = session }

        /// The response of a third token in a row is never lost: that would be two holders.
        mutating func passHour(_ client: RPCClient, losing isLost: Bool) async throws {
            let next = try await client.call(Auth.Refresh(refreshToken: session.refreshToken))
            if isLost, isRepeated || lostInARow < 2 {
                isRepeated = true
                return
            }
            lostInARow = isRepeated ? lostInARow + 1 : 0
            isRepeated = false
            session = next
        }
    }

    @Test func appAndWidgetRefreshForDaysAndNoUserIsLoggedOut() async throws {
        let folder = try TemporaryFolder()
        // No repetition is within the window of a token's use: each one is as late as after hours.
        let arguments = ["--data", "\(folder.path)/data", "--scrypt-log-n", "4", "--refresh-grace-seconds", "0"]
        var random = SeededRandom(seed: SeededRandom.seed())
        var program = try await ServingProgram("hato-auth", arguments, in: folder)
        var client = try program.client()
        var signUp = Auth.SignUp(displayName: "マスオさん")
        signUp.label = "app"
        var app = Device(try #require(try await client.call(signUp).session))
        let fork = Auth.Sessions.Fork(refreshToken: app.session.refreshToken, label: "widget")
        var widget = Device(try await client.call(fork))
        let uid = app.session.uid
        for _ in 0..<4 {
            for _ in 0..<24 {
                try await app.passHour(client, losing: Bool.random(using: &random))
                try await widget.passHour(client, losing: Bool.random(using: &random))
            }
            // At night auth starts again.
            await client.close()
            await program.stop()
            program = try await ServingProgram("hato-auth", arguments, in: folder)
            client = try program.client()
            for device in [app, widget] {
                let account = try await client.call(Auth.Account.Get(), credential: device.session.idToken)
                #expect(account.uid == uid)
            }
        }
        let sessions = try await client.call(Auth.Sessions.List(uid: uid)).sessions
        #expect(Set(sessions.map(\.label)) == ["app", "widget"] && sessions.count == 2)
        // The command goes on through the pages.
        let key = try folder.write("key", ServingProgram.administratorKey)
        let listed = try await Executable.run(
            "hato-auth", ["sessions", "list", "--uid", uid, "--page-size", "1"],
            ["HATO_AUTH_SERVER": program.address, "HATO_ADMIN_KEY_FILE": key])
        #expect(listed.output["sessions"]?.array?.count == 2, "\(listed.error)")

        // Two that share one token, as without a fork, use it up for each other.
        let shared = app.session.refreshToken
        var newest = shared
        for _ in 0..<2 { newest = try await client.call(Auth.Refresh(refreshToken: newest)).refreshToken }
        let refused = await #expect(throws: RPCError.self) {
            try await client.call(Auth.Refresh(refreshToken: shared))
        }
        #expect(refused?.reason == "INVALID_REFRESH_TOKEN")
        await client.close()
        await program.stop()
    }
}

import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// What ends in auth ends in the other services, too: tokens, listeners, devices and profiles.
@Suite(.timeLimit(.minutes(5)))
struct EndedAccounts {
    private func reason(_ body: () async throws -> some Any) async -> String? {
        do {
            _ = try await body()
            return nil
        } catch { return (error as? RPCError)?.reason ?? "\(error)" }
    }

    private func read(_ stack: TestStack, _ session: Auth.Session) async -> String? {
        let client = stack.client(.messages)
        let reason = await reason { try await client.call(Messages.Get(path: .root), credential: session.idToken) }
        await client.close()
        return reason
    }

    /// The reason with which the listener of a user ends while `end` runs.
    private func endOfListener(
        _ stack: TestStack, _ session: Auth.Session, _ end: () async throws -> Void
    ) async throws -> JSONValue? {
        let client = stack.client(.messages, as: .user(idToken: session.idToken))
        let subscription = try await client.subscribe(Messages.Listen(path: try TreePath("/a")))
        try await end()
        var last: RPCEvent?
        for try await event in subscription { last = event }
        // The connection has lost the identity, too.
        #expect(await reason { try await client.call(Messages.Get(path: .root)) } == "TOKEN_EXPIRED")
        await client.close()
        return last?.params["reason"]
    }

    @Test func deletedAndDisabledUsersLoseTheirListenersAtOnce() async throws {
        try await TestStack.run { stack in
            let administrator = stack.client(.auth, as: .administrator)
            let (deleted, disabled, other) = (
                try await stack.newUser(), try await stack.newUser(), try await stack.newUser()
            )
            let end = try await endOfListener(stack, deleted) {
                _ = try await administrator.call(Auth.Users.Delete(uid: deleted.uid))
            }
            #expect(end == "token_revoked")
            let otherEnd = try await endOfListener(stack, disabled) {
                var request = Auth.Users.Update(uid: disabled.uid)
                request.disabled = true
                _ = try await administrator.call(request)
            }
            #expect(otherEnd == "token_revoked")
            #expect(await [read(stack, deleted), read(stack, disabled)] == ["TOKEN_EXPIRED", "TOKEN_EXPIRED"])
            #expect(await read(stack, other) == nil)
            await administrator.close()
        }
    }

    @Test func signedOutSessionEndsAndTheOthersOfTheUserGoOn() async throws {
        try await TestStack.run { stack in
            let auth = stack.client(.auth)
            let app = try await stack.newUser()
            let widget = try await auth.call(Auth.Sessions.Fork(refreshToken: app.refreshToken))
            let end = try await endOfListener(stack, widget) {
                _ = try await auth.call(Auth.SignOut(refreshToken: widget.refreshToken))
            }
            #expect(end == "token_revoked")
            #expect(await [read(stack, widget), read(stack, app)] == ["TOKEN_EXPIRED", nil])
            await auth.close()
        }
    }

    @Test func refusalsOutliveARestart() async throws {
        do {
            let folder = try TemporaryFolder()
            let first = try await TestStack.start(["--data", folder.path + "/data"])
            let administrator = first.client(.auth, as: .administrator)
            let (ended, other) = (try await first.newUser(), try await first.newUser())
            _ = try await administrator.call(Auth.Users.Revoke(uid: ended.uid))
            _ = try await administrator.call(Auth.Users.Delete(uid: ended.uid))
            try await eventually("it is refused") { await read(first, ended) == "TOKEN_EXPIRED" }
            await administrator.close()
            await first.kill()
            let second = try await TestStack.start(["--data", folder.path + "/data"])
            #expect(await [read(second, ended), read(second, other)] == ["TOKEN_EXPIRED", nil])
            await second.stop()
        }
    }

    @Test func devicesGoWithTheirSessionAndTheirUser() async throws {
        try await TestStack.run { stack in
            let (auth, administrator) = (stack.client(.auth), stack.client(.auth, as: .administrator))
            let (notifier, devices) = (stack.client(.notifier), stack.client(.notifier, as: .administrator))
            let app = try await stack.newUser()
            let tablet = try await auth.call(Auth.Sessions.Fork(refreshToken: app.refreshToken))
            for (session, name) in [(app, "app"), (tablet, "tablet")] {
                _ = try await notifier.call(
                    Notifier.Devices.Register(url: "http://127.0.0.1:9/\(name)"),
                    credential: session.idToken)
            }
            func urls() async throws -> [String] {
                try await devices.call(Notifier.Devices.List(uid: app.uid)).devices.compactMap(\.url).sorted()
            }
            #expect(try await urls() == ["http://127.0.0.1:9/app", "http://127.0.0.1:9/tablet"])
            _ = try await auth.call(Auth.SignOut(refreshToken: tablet.refreshToken))
            try await eventually("the device of the session is gone") {
                try await urls() == ["http://127.0.0.1:9/app"]
            }
            _ = try await administrator.call(Auth.Users.Delete(uid: app.uid))
            try await eventually("all devices are gone") { try await urls() == [] }
            for client in [auth, administrator, notifier, devices] { await client.close() }
        }
    }

    @Test func profilesStandInTheTreeWhereOtherUsersReadThem() async throws {
        try await TestStack.run(["--rules", "chat"]) { stack in
            let (auth, administrator) = (stack.client(.auth), stack.client(.auth, as: .administrator))
            let reader = stack.client(.messages, as: .user(idToken: try await stack.newUser().idToken))
            let masuo = try #require(try await auth.call(Auth.SignUp(displayName: "マスオさん")).session)
            func profile() async throws -> [JSONValue] {
                var values: [JSONValue] = []
                for child in ["name", "photo"] {
                    let path = try TreePath("/users/\(masuo.uid)/\(child)")
                    values.append(try await reader.call(Messages.Get(path: path)).value)
                }
                return values
            }
            try await eventually("the name of the new account") { try await profile() == ["マスオさん", .null] }
            var update = Auth.Users.Update(uid: masuo.uid)
            update.photoUrl = "https://example.com/m.png"
            _ = try await administrator.call(update)
            try await eventually("the photo") { try await profile() == ["マスオさん", "https://example.com/m.png"] }
            update.photoUrl = "http://example.com/m.png"
            update.displayName = "マスオ"
            _ = try await administrator.call(update)
            try await eventually("a photo that is not https is left out") { try await profile() == ["マスオ", .null] }
            // No user writes another name than the account's.
            let own = stack.client(.messages, as: .user(idToken: masuo.idToken))
            let refusal = await reason {
                try await own.call(Messages.Set(path: try TreePath("/users/\(masuo.uid)/name"), value: "波平"))
            }
            #expect(refusal == "permission_denied")
            _ = try await administrator.call(Auth.Users.Delete(uid: masuo.uid))
            try await eventually("the profile is gone") { try await profile() == [.null, .null] }
            for client in [auth, administrator, reader, own] { await client.close() }
        }
    }
}

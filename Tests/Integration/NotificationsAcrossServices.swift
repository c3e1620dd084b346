import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// A write in messages becomes a webhook of the notifier, for users of auth.
@Suite(.timeLimit(.minutes(5)))
struct NotificationsAcrossServices {
    private func push(_ stack: TestStack, _ author: Auth.Session, _ text: String) async throws {
        let client = stack.client(.messages)
        _ = try await client.call(
            Messages.Push(
                path: try TreePath("/chats/c1/messages"), value: ["senderName": "マスオ", "text": .string(text)]),
            credential: author.idToken)
        await client.close()
    }

    /// Two members of a chat with a receiver each, and a trigger for the chat's messages; returns the other member's
    /// secret.
    private func furnish(
        _ stack: TestStack, _ author: (Auth.Session, SignedReceiver), _ other: (Auth.Session, SignedReceiver)
    ) async throws -> String {
        let messages = stack.client(.messages, as: .administrator)
        _ = try await messages.call(
            Messages.Set(
                path: try TreePath("/chats/c1/members"), value: [author.0.uid: true, other.0.uid: true] as JSONValue))
        await messages.close()
        let devices = stack.client(.notifier)
        _ = try await devices.call(Notifier.Devices.Register(url: author.1.url), credential: author.0.idToken)
        let device = try await devices.call(Notifier.Devices.Register(url: other.1.url), credential: other.0.idToken)
        await devices.close()
        let administrator = stack.client(.notifier, as: .administrator)
        _ = try await administrator.call(
            Notifier.Triggers.Set(
                id: "message", pattern: "/chats/{chat}/messages/{id}",
                recipients: .init(uidsAt: "/chats/{chat}/members"),
                notification: .init(title: "{after.senderName}さんからのメッセージ", body: "{after.text}")))
        await administrator.close()
        return try #require(device.secret)
    }

    private func settled(_ stack: TestStack) async throws {
        let client = stack.client(.notifier, as: .administrator)
        try await eventually("nothing waits") { try await client.call(Notifier.Stats()).pending == 0 }
        await client.close()
    }

    @Test func theOtherMemberGetsOneSignedNotificationAndTheAuthorNone() async throws {
        try await TestStack.run { stack in
            let (author, other) = (try await SignedReceiver(), try await SignedReceiver())
            let (writer, reader) = (try await stack.newUser(), try await stack.newUser())
            let secret = try await furnish(stack, (writer, author), (reader, other))
            try await push(stack, writer, "ただいま")
            try await eventually("a webhook") { other.received.count == 1 }
            let first = try #require(other.received.first)
            let data = try JSONParser.parse(first.body)["data"]
            #expect(data?["title"] == "マスオさんからのメッセージ" && data?["body"] == "ただいま")
            #expect(data?["uid"] == .string(reader.uid))
            #expect(first.isSigned(with: secret))

            await other.stop()
            try await push(stack, writer, "二つ目")
            let administrator = stack.client(.notifier, as: .administrator)
            try await eventually("an attempt failed") { try await administrator.call(Notifier.Stats()).pending == 1 }
            await administrator.close()
            try await other.start()
            try await settled(stack)
            #expect(other.received.compactMap(\.text) == ["ただいま", "二つ目"])
            #expect(author.received.isEmpty)
            await author.stop()
            await other.stop()
        }
    }

    @Test func onlyMatchingChangesAreNotified() async throws {
        try await TestStack.run { stack in
            let receiver = try await SignedReceiver()
            let (writer, reader) = (try await stack.newUser(), try await stack.newUser())
            let devices = stack.client(.notifier)
            _ = try await devices.call(Notifier.Devices.Register(url: receiver.url), credential: reader.idToken)
            await devices.close()
            let administrator = stack.client(.notifier, as: .administrator)
            var trigger = Notifier.Triggers.Set(
                id: "mention", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: [reader.uid]),
                notification: .init(body: "{before.text}→{after.text}"))
            trigger.on = [.created, .updated]
            trigger.when = "after.text.contains('@サザエ') && before.text != after.text && chat != 'lobby'"
            _ = try await administrator.call(trigger)
            for text in ["おはよう", "@サザエ おはよう"] { try await push(stack, writer, text) }
            // A write below the node: the notifier reads the missing values, and knows that they have not changed.
            let messages = stack.client(.messages)
            for (child, value) in [("/text", "やあ @サザエ"), ("/seen", true)] as [(String, JSONValue)] {
                _ = try await messages.call(
                    Messages.Set(path: try TreePath("/chats/c2/messages/m1\(child)"), value: value),
                    credential: writer.idToken)
            }
            await messages.close()
            try await push(stack, writer, "またね @サザエ")
            try await eventually("three webhooks") {
                receiver.received.compactMap(\.text) == ["→@サザエ おはよう", "→やあ @サザエ", "→またね @サザエ"]
            }
            try await settled(stack)
            #expect(receiver.received.count == 3)
            await administrator.close()
            await receiver.stop()
        }
    }

    @Test func anImportFiresNoTriggersIfRequested() async throws {
        try await TestStack.run { stack in
            let (author, other) = (try await SignedReceiver(), try await SignedReceiver())
            let (writer, reader) = (try await stack.newUser(), try await stack.newUser())
            _ = try await furnish(stack, (writer, author), (reader, other))
            let messages = stack.client(.messages, as: .administrator)
            for (id, isQuiet) in [("m1", true), ("m2", false), ("m3", true)] {
                let row: [JSONValue] = [.string("/chats/c1/messages/\(id)/text"), .string(id)]
                _ = try await messages.call(
                    Messages.Import(path: .root, rows: [row], disableTriggers: isQuiet ? true : nil))
            }
            await messages.close()
            try await push(stack, writer, "ただいま")
            try await eventually("the next message is sent") { other.received.compactMap(\.text).contains("ただいま") }
            try await settled(stack)
            #expect(other.received.compactMap(\.text) == ["m2", "ただいま"])
            await author.stop()
            await other.stop()
        }
    }

    @Test func everyMessageOfALargeWriteAndOfItsRemovalIsNotified() async throws {
        try await TestStack.run { stack in
            let (author, other) = (try await SignedReceiver(), try await SignedReceiver())
            let (writer, reader) = (try await stack.newUser(), try await stack.newUser())
            _ = try await furnish(stack, (writer, author), (reader, other))
            let administrator = stack.client(.notifier, as: .administrator)
            var removed = Notifier.Triggers.Set(
                id: "removed", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: [reader.uid]),
                notification: .init(body: "{id} is gone"))
            removed.on = [.deleted]
            _ = try await administrator.call(removed)
            await administrator.close()
            let text = String(repeating: "x", count: 20_000)
            let messages = JSONObject(
                uniqueMembers: (0..<150).map { number in
                    .init("m\(number)", ["senderName": "マスオ", "text": .string("\(number) \(text)")])
                })
            let client = stack.client(.messages, as: .user(idToken: writer.idToken))
            _ = try await client.call(Messages.Set(path: try TreePath("/chats/c1/messages"), value: .object(messages)))
            try await eventually("all are delivered") { Set(other.received.compactMap(\.number)) == Set(0..<150) }
            _ = try await client.call(Messages.Remove(path: try TreePath("/chats/c1")))
            let gone = Set((0..<150).map { "m\($0) is gone" })
            try await eventually("all removals are delivered") { gone.isSubset(of: other.received.compactMap(\.text)) }
            try await settled(stack)
            #expect(other.received.count == 300)
            await client.close()
            await author.stop()
            await other.stop()
        }
    }

    @Test func aUserCanNeitherSendNorSeeWhatIsSent() async throws {
        try await TestStack.run { stack in
            let user = try await stack.newUser()
            let client = stack.client(.notifier)
            func code<Request: RPCRequest>(_ request: Request) async -> RPCError.Code? {
                do {
                    _ = try await client.call(request, credential: user.idToken)
                    return nil
                } catch { return (error as? RPCError)?.code }
            }
            #expect(
                await code(Notifier.Send(to: .init(uids: [user.uid]), notification: .init(title: "x")))
                    == .permissionDenied)
            #expect(await code(Notifier.Stats()) == .permissionDenied)
            #expect(await code(Notifier.Dead.List()) == .permissionDenied)
            #expect(await code(Notifier.Triggers.List()) == .permissionDenied)
            #expect(await code(Notifier.Devices.List()) == nil)
            await client.close()
        }
    }
}

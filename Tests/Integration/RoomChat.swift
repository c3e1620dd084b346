import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

@Suite("RxSwift（とFirebase）でチャットツールを書く", .timeLimit(.minutes(10)))
struct RoomChat {
    /// One room of all users: every signed-in user may write.
    private static let rules = """
        {"rules": {
          "messages": {
            ".read": "auth != null",
            "$message": {
              ".write": "auth != null && !data.exists()",
              ".validate": "newData.child('uid').val() === auth.uid && newData.child('text').isString()"
            }
          },
          "users": {"$uid": {".read": "auth != null", ".write": "auth !== null && auth.uid === $uid"}}
        }}
        """

    @Test func aMessageOfTheRoomReachesEveryMemberButItsAuthor() async throws {
        try await withFirebase { stack, firebase in
            let messages = stack.client(.messages, as: .administrator)
            _ = try await messages.call(method: "messages.rules.set", params: ["rules": .string(Self.rules)])
            await messages.close()
            var members: [(user: Auth.Session, token: String)] = []
            for name in ["マスオ", "サザエ", "カツオ", "ワカメ"] {
                let (user, token) = (try await stack.newUser(), "token-\(members.count)")
                try await stack.set("/users/\(user.uid)", ["name": .string(name)], as: user)
                let client = stack.client(.notifier, as: .user(idToken: user.idToken))
                _ = try await client.call(
                    method: "notifier.devices.register", params: ["platform": "fcm", "token": .string(token)])
                await client.close()
                members.append((user, token))
            }
            _ = try await stack.notify(
                Notifier.Triggers.Set(
                    id: "room", pattern: "/messages/{message}", recipients: .init(uidsAt: "/users"),
                    notification: .init(title: "{author.name}", body: "{after.text}")))
            let texts = ["ただいま", "おかえり!", "今行きます"]
            for ((user, _), text) in zip(members, texts) {
                try await stack.push("/messages", ["uid": .string(user.uid), "text": .string(text)], as: user)
            }
            let count = texts.count * (members.count - 1)
            try await eventually("all pushes") { firebase.messages.count >= count }
            try await stack.settled()
            #expect(firebase.messages.count == count)
            for (index, (_, token)) in members.enumerated() {
                let shown = firebase.messages(to: token).compactMap { $0["notification"]?["body"]?.string }
                #expect(shown == texts.enumerated().filter { $0.offset != index }.map(\.element), "in their order")
            }
            let titles = firebase.messages(to: "token-3").map { $0["notification"]?["title"] }
            #expect(titles == ["マスオ", "サザエ", "カツオ"])
            // The rules hold for the room, too.
            let stranger = JSONValue.object(["uid": .string(members[0].user.uid), "text": "偽"])
            await #expect(throws: RPCError.self) { try await stack.push("/messages", stranger, as: members[1].user) }
        }
    }
}

import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

@Suite("Firebaseを活用してチャットアプリを楽々プロトタイプ", .timeLimit(.minutes(10)))
struct ChatPrototypes {
    /// The article spells the fields in two ways.
    @Test func writingLatestMessagePushesToTheTokenInIt() async throws {
        try await withFirebase(["--triggers", "latest-message"]) { stack, firebase in
            let masuo = try await stack.newUser()
            let spellings: [JSONValue] = [
                [
                    "sender_user_name": "マスオ", "message_text": "いまから帰ります", "receiver_fcm_token": "token-1",
                ],
                ["sender_name": "マスオ", "message": "いまから帰ります", "receiver_fcm_token": "token-2"],
            ]
            for (index, message) in spellings.enumerated() {
                try await stack.set("/latest_message", message, as: masuo)
                let token = "token-\(index + 1)"
                try await eventually("the push") { !firebase.messages(to: token).isEmpty }
                let push = try #require(firebase.messages(to: token).first)
                let shown = push["notification"]
                #expect(shown?["title"] == "マスオさんからのメッセージ" && shown?["body"] == "いまから帰ります")
                #expect(push["android"]?["priority"] == "HIGH")
                #expect(push["android"]?["notification"]?["sound"] == "default")
                let apns = push["apns"]
                #expect(apns?["payload"]?["aps"]?["badge"] == 1 && apns?["payload"]?["aps"]?["sound"] == "default")
                #expect(apns?["headers"]?["apns-priority"] == "10")
            }
            try await stack.set("/latest_message", .null, as: masuo)
            try await stack.set("/latest_message", spellings[0], as: masuo)
            try await eventually("the next push") { firebase.messages.count >= 3 }
            try await stack.settled()
            #expect(firebase.messages.count == 3, "nothing is sent when it is removed")
        }
    }

    @Test func aTwoPersonChatNotifiesTheOtherByTheTokenInUsers() async throws {
        try await withFirebase { stack, firebase in
            let (masuo, tara) = (try await stack.newUser(), try await stack.newUser())
            for (user, name, token) in [(masuo, "マスオさん", "token-masuo"), (tara, "タラちゃん", "token-tara")] {
                try await stack.set(
                    "/users/\(user.uid)", ["name": .string(name), "fcm_token": .string(token)], as: user)
            }
            try await stack.set(
                "/chats/c1/ids", ["first_user_id": .string(masuo.uid), "second_user_id": .string(tara.uid)], as: masuo)
            var recipients = Notifier.Recipients(uidsIn: "/chats/{chat}/ids")
            (recipients.tokenAt, recipients.platform) = ("/users/{uid}/fcm_token", .fcm)
            var trigger = Notifier.Triggers.Set(
                id: "chat", pattern: "/chats/{chat}/messages/{message}", recipients: recipients,
                notification: .init(title: "{author.name}からのメッセージ", body: "{after.text}"))
            trigger.when = "after.sender_id != null"
            _ = try await stack.notify(trigger)
            for (user, text) in [(masuo, "いまから帰ります"), (tara, "おかえりですー")] {
                try await stack.push(
                    "/chats/c1/messages", ["sender_id": .string(user.uid), "text": .string(text)], as: user)
            }
            try await eventually("both pushes") { firebase.messages.count >= 2 }
            try await stack.settled()
            #expect(firebase.messages.count == 2)
            let toTara = firebase.messages(to: "token-tara").first?["notification"]
            #expect(toTara?["title"] == "マスオさんからのメッセージ" && toTara?["body"] == "いまから帰ります")
            let toMasuo = firebase.messages(to: "token-masuo").first?["notification"]
            #expect(toMasuo?["title"] == "タラちゃんからのメッセージ" && toMasuo?["body"] == "おかえりですー")
        }
    }

    @Test func sendToDeviceTakesThePayloadOfTheOldFunction() async throws {
        try await withFirebase { stack, firebase in
            let client = stack.client(.notifier, as: .administrator)
            let result = try await client.call(
                method: "notifier.sendToDevice",
                params: [
                    "token": "token-1",
                    "payload": [
                        "notification": [
                            "title": "マスオさんからのメッセージ", "body": "いまから帰ります", "badge": "1",
                            "sound": "default",
                        ]
                    ],
                    "options": ["priority": "high"],
                ])
            await client.close()
            #expect(result["successCount"] == 1 && result["failureCount"] == 0)
            #expect(result["canonicalRegistrationTokenCount"] == 0)
            let id = try #require(result["results"]?.array?.first?["messageId"]?.string)
            try await eventually("the push") { !firebase.messages.isEmpty }
            let push = try #require(firebase.messages.first)
            #expect(push["token"] == "token-1" && push["notification"]?["title"] == "マスオさんからのメッセージ")
            #expect(push["apns"]?["payload"]?["aps"]?["badge"] == 1 && push["android"]?["priority"] == "HIGH")
            let notification = String(id.prefix { $0 != "-" })
            try await eventually("delivered") {
                let status = try await stack.notify(Notifier.Status(notification: notification))
                return status.deliveries.first?.delivery == id && status.deliveries.first?.state == .delivered
            }
        }
    }
}

@Suite("RxSwift（とFirebase）でチャットツールを書く", .timeLimit(.minutes(10)))
struct ChatToolRoom {
    @Test func aMessageOfTheRoomReachesEveryMemberButItsAuthor() async throws {
        try await withFirebase { stack, firebase in
            var users: [Auth.Session] = []
            for (number, name) in ["マスオ", "サザエ", "タラ"].enumerated() {
                let user = try await stack.newUser()
                try await stack.set("/users/\(user.uid)/name", .string(name), as: user)
                var register = Notifier.Devices.Register(platform: .fcm)
                register.token = "token-\(number)"
                let client = stack.client(.notifier, as: .user(idToken: user.idToken))
                _ = try await client.call(register)
                await client.close()
                users.append(user)
            }
            _ = try await stack.notify(
                Notifier.Triggers.Set(
                    id: "room", pattern: "/messages/{message}", recipients: .init(uidsAt: "/users"),
                    notification: .init(title: "{author.name}さんからのメッセージ", body: "{after.text}")))
            try await stack.push("/messages", ["text": "ごはんですよ"], as: users[1])
            try await eventually("the others have it") { firebase.messages.count >= 2 }
            try await stack.settled()
            #expect(firebase.messages.compactMap { $0["token"]?.string }.sorted() == ["token-0", "token-2"])
            for push in firebase.messages {
                #expect(push["notification"]?["title"] == "サザエさんからのメッセージ")
                #expect(push["notification"]?["body"] == "ごはんですよ")
            }
        }
    }
}

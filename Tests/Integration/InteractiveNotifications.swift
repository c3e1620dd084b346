import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

/// Users choose buttons of notifications, and reply without opening the app.
@Suite("iOS8のInteractive Notifications", .timeLimit(.minutes(10)))
struct InteractiveNotifications {
    private struct Part {
        let stack: TestStack
        let firebase: FCMStandIn

        /// Calls a service.
        func call<Request: RPCRequest>(
            _ request: Request, of service: TestStack.Service = .notifier, as identity: TestStack.Identity = .nobody
        ) async throws -> Request.Result {
            let client = stack.client(service, as: identity)
            let result: Result<Request.Result, any Error>
            do { result = .success(try await client.call(request)) } catch { result = .failure(error) }
            await client.close()
            return try result.get()
        }

        func addPhone(_ token: String, of user: Auth.Session) async throws {
            var register = Notifier.Devices.Register(platform: .fcm)
            (register.token, register.locale) = (token, "ja-JP")
            _ = try await call(register, as: .user(idToken: user.idToken))
        }

        func node(_ path: String) async throws -> JSONValue {
            try await call(Messages.Get(path: TreePath(path)), of: .messages, as: .administrator).value
        }

        /// The push to a phone, and what its app needs to respond.
        func push(to token: String) async throws -> (message: JSONValue, respond: Notifier.Respond) {
            try await eventually("the push") { !firebase.messages(to: token).isEmpty }
            let message = try #require(firebase.messages(to: token).last)
            let hato = try JSONParser.parse(Array(#require(message["data"]?["hato"]?.string).utf8))
            return (
                message,
                Notifier.Respond(
                    notification: try #require(hato["id"]?.string), replyToken: try #require(hato["reply"]?.string))
            )
        }

        /// Responds as the app of the phone, which has the push alone.
        func respond(_ token: String, _ action: String) async throws -> Notifier.Respond.Result {
            var respond = try await push(to: token).respond
            respond.action = action
            return try await call(respond)
        }

        /// The actions of the article, which only their user may have written down.
        func propose(to user: Auth.Session) async throws {
            let rules = """
                {"rules": {"answers": {"$uid": {
                  ".write": "auth != null && auth.uid === $uid && auth.token.name === 'フネ'"}}}}
                """
            _ = try await call(Messages.Rules.Set(rules: rules), of: .messages, as: .administrator)
            var accept = Notifier.CategoryAction(id: "ACCEPT", title: .init("承認"))
            accept.activation = .background
            accept.effect = .init(set: .init(path: "/answers/{uid}", value: "承認をえらんだね"))
            var refuse = Notifier.CategoryAction(id: "REFUSE", title: .init("拒否"))
            (refuse.activation, refuse.destructive) = (.foreground, true)
            refuse.effect = .init(set: .init(path: "/answers/{uid}", value: "拒否をえらんだね"))
            _ = try await call(
                Notifier.Categories.Set(.init(id: "MARRY_ME", actions: [accept, refuse])), as: .administrator)
            var send = Notifier.Send(
                to: .init(uids: [user.uid]), notification: .init(body: "ぼくと結婚してください!"))
            send.category = "MARRY_ME"
            _ = try await call(send, as: .administrator)
        }
    }

    private func running(
        _ arguments: [String] = [], _ body: (Part) async throws -> Void
    ) async throws {
        let firebase = try await FCMStandIn()
        let result: Result<Void, any Error>
        do {
            try await TestStack.run(["--apps-file", firebase.appsFile] + arguments) { stack in
                try await body(Part(stack: stack, firebase: firebase))
            }
            result = .success(())
        } catch { result = .failure(error) }
        await firebase.stop()
        try result.get()
    }

    /// With a phone and a tablet.
    private func proposing(_ body: (Part, Auth.Session) async throws -> Void) async throws {
        try await running { part in
            let fune = try #require(
                try await part.call(Auth.SignUp(displayName: "フネ"), of: .auth).session)
            for token in ["phone", "tablet"] { try await part.addPhone(token, of: fune) }
            try await part.propose(to: fune)
            try await body(part, fune)
        }
    }

    @Test func marryMeArrivesAsInTheArticle() async throws {
        try await proposing { part, _ in
            let message = try await part.push(to: "phone").message
            #expect(
                message["apns"]?["payload"]?["aps"] == ["alert": "ぼくと結婚してください!", "category": "MARRY_ME"])
            // Android shows buttons only of what the app builds.
            #expect(message["notification"] == nil && message["android"]?["priority"] == "HIGH")
            #expect(message["data"]?["body"] == "ぼくと結婚してください!" && message["data"]?["category"] == "MARRY_ME")
            let actions = try JSONParser.parse(Array(#require(message["data"]?["actions"]?.string).utf8))
            #expect(actions.array?.map { $0["title"] } == ["承認", "拒否"])
            #expect(actions.array?.map { $0["activation"] } == ["background", "foreground"])
            #expect(actions.array?.map { $0["destructive"] } == [false, true])
            let categories = try await part.call(Notifier.Categories.Get()).categories
            #expect(categories?.map(\.id) == ["MARRY_ME"] && categories?.first?.actions.first?.effect == nil)
        }
    }

    @Test func acceptingWorksWithoutOpeningTheApp() async throws {
        try await proposing { part, fune in
            let result = try await part.respond("phone", "ACCEPT")
            #expect(result == .init(effect: .done))
            let answers = try await part.node("/answers")
            #expect(answers == [fune.uid: "承認をえらんだね"])
        }
    }

    @Test func refusingOpensTheApp() async throws {
        try await proposing { part, fune in
            let client = part.stack.client(.notifier, as: .administrator)
            let events = try await client.subscribe(Notifier.Follow(after: 0))
            #expect(try await part.respond("phone", "REFUSE") == .init(effect: .done))
            #expect(try await part.respond("phone", "opened") == .init(effect: .none))
            #expect(try await part.node("/answers") == [fune.uid: "拒否をえらんだね"])
            var reported: [Notifier.Event] = []
            for try await event in events {
                let event = try Notifier.Event.decode(event.params)
                if event.type == .action || event.type == .opened { reported.append(event) }
                if event.type == .opened { break }
            }
            #expect(reported.map(\.type) == [.action, .opened] && reported.first?.action == "REFUSE")
            #expect(reported.allSatisfy { $0.uid == fune.uid && $0.device != nil && $0.reason == nil })
            await client.close()
        }
    }

    @Test func theSecondTapOnAnotherPhoneChangesNothing() async throws {
        try await proposing { part, fune in
            #expect(try await part.respond("phone", "ACCEPT") == .init(effect: .done))
            #expect(try await part.respond("tablet", "ACCEPT") == .init(effect: .done))
            do {
                _ = try await part.respond("tablet", "REFUSE")
                Issue.record("the second tap counted")
            } catch let error as RPCError {
                #expect(error.reason == "already_responded" && error.data["action"] == "ACCEPT")
            }
            #expect(try await part.node("/answers") == [fune.uid: "承認をえらんだね"])
        }
    }

    @Test func acceptingIsReportedOnceToTheAddressOfItsEffect() async throws {
        try await running { part in
            let receiver = try await SignedReceiver()
            let fune = try #require(try await part.call(Auth.SignUp(displayName: "フネ"), of: .auth).session)
            for token in ["phone", "tablet"] { try await part.addPhone(token, of: fune) }
            var accept = Notifier.CategoryAction(id: "ACCEPT", title: .init("承認"))
            accept.effect = .webhook(receiver.url)
            let set = Notifier.Categories.Set(.init(id: "MARRY_ME", actions: [accept]))
            let shown = try #require(try await part.call(set, as: .administrator).webhooks?.first)
            var send = Notifier.Send(
                to: .init(uids: [fune.uid]), notification: .init(body: "ぼくと結婚してください!"))
            (send.category, send.data) = ("MARRY_ME", ["ring": "gold"])
            let id = try await part.call(send, as: .administrator).notification
            // Nothing waits for the receiver.
            await receiver.stop()
            for phone in ["phone", "tablet", "phone"] {
                #expect(try await part.respond(phone, "ACCEPT") == .init(effect: .done))
            }
            try await receiver.start()
            let client = part.stack.client(.notifier, as: .administrator)
            try await eventually("all is delivered") { try await client.call(Notifier.Stats()).pending == 0 }
            let report = try #require(receiver.received.first)
            #expect(Set(receiver.received.map(\.id)).count == 1)
            #expect(report.isSigned(with: try #require(shown.secret)))
            let body = try JSONParser.parse(report.body)
            #expect(body["type"] == "notification.action" && body["data"]?["notification"]?.string == id)
            #expect(body["data"]?["uid"]?.string == fune.uid && body["data"]?["action"] == "ACCEPT")
            #expect(body["data"]?["category"] == "MARRY_ME" && body["data"]?["data"] == ["ring": "gold"])
            var list = Notifier.Outbox.List()
            list.device = shown.device
            let deliveries = try await client.call(list).deliveries
            #expect(deliveries.map(\.state) == [.delivered] && deliveries.first?.delivery == report.id)
            await client.close()
            await receiver.stop()
        }
    }

    @Test func repliesOfTheChatTriggerAreInTheChatOnce() async throws {
        try await running(["--rules", "chat", "--triggers", "chat"]) { part in
            var users: [Auth.Session] = []
            for (name, phone) in [("マスオ", "masuo"), ("サザエ", "sazae")] {
                let user = try #require(try await part.call(Auth.SignUp(displayName: name), of: .auth).session)
                try await part.addPhone(phone, of: user)
                users.append(user)
            }
            let masuo = TestStack.Identity.user(idToken: users[0].idToken)
            _ = try await part.call(
                Messages.Set(
                    path: try TreePath("/chats/c1"),
                    value: ["members": [users[0].uid: "admin", users[1].uid: "member"]]), of: .messages, as: masuo)
            func say(_ text: String) async throws {
                _ = try await part.call(
                    Messages.Push(
                        path: try TreePath("/chats/c1/messages"),
                        value: [
                            "date": [".sv": "timestamp"], "senderId": .string(users[0].uid), "text": .string(text),
                        ]), of: .messages, as: masuo)
            }
            try await say("いまから帰ります")
            var reply = try await part.push(to: "sazae").respond
            (reply.action, reply.text) = ("REPLY", "おかえり")
            #expect(try await part.call(reply) == .init(effect: .done))
            #expect(try await part.call(reply) == .init(effect: .done))
            // The reply is a message: its push has no other author.
            let push = try await part.push(to: "masuo").message
            #expect(push["data"]?["body"] == "おかえり" && push["data"]?["category"] == "QUICK6")
            _ = try await part.call(
                Notifier.QuickReplies.Set(texts: ["了解", "すぐ行く"]), as: .user(idToken: users[0].idToken))
            var quick = try await part.push(to: "masuo").respond
            quick.quickReply = 1
            #expect(try await part.call(quick) == .init(effect: .done))
            let messages = try await part.node("/chats/c1/messages").object?.members.map(\.value) ?? []
            #expect(messages.map { $0["text"] } == ["いまから帰ります", "おかえり", "すぐ行く"])
            #expect(messages.map { $0["senderName"] } == [nil, "サザエ", "マスオ"])
        }
    }
}

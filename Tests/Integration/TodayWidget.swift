import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

/// Where an app and its widget have their chat.
enum WidgetChat: String, CaseIterable, Sendable {
    /// Beside the name of the other user, under rules that let every signed-in user do everything. The widget has an
    /// anonymous token of its own, and the app's words.
    case asInTheArticle
    /// A chat of two under the rules that come along, with a session that the app forks for its widget.
    case withTheChatRules
}

/// A phone with a chat app and its widget. Its user is サザエ, and writes with マスオ.
private struct WidgetPhone {
    let chat: WidgetChat
    let stack: TestStack
    let firebase: FCMStandIn
    let masuo: Auth.Session
    let sazae: Auth.Session
    /// That of the widget.
    let widget: Auth.Session
    /// Of the chat.
    let messages: TreePath

    static let nothingNew = "新着メッセージはありません"
    static let sent = "メッセージを送信しました"
    /// What the user of the app has chosen for its six buttons.
    static let words = ["はい", "いいえ", "いまどこ?", "ごはんできたよ", "気をつけてね", "あとで電話する"]

    /// Runs with a stack, and with a phone of each user, whose tokens are `masuo` and `sazae`.
    static func run(_ chat: WidgetChat, _ body: (WidgetPhone) async throws -> Void) async throws {
        try await withFirebase(chat == .withTheChatRules ? ["--rules", "chat", "--triggers", "chat"] : []) {
            stack, firebase in
            var users: [Auth.Session] = []
            for (name, token) in [("マスオ", "masuo"), ("サザエ", "sazae")] {
                let signUp = try await stack.call(Auth.SignUp(displayName: name), of: .auth)
                let user = try #require(signUp.session)
                var register = Notifier.Devices.Register(platform: .fcm)
                (register.token, register.locale) = (token, "ja-JP")
                _ = try await stack.call(register, of: .notifier, as: .user(idToken: user.idToken))
                users.append(user)
            }
            let (masuo, sazae) = (users[0], users[1])
            let (widget, path): (Auth.Session, String)
            switch chat {
            case .asInTheArticle:
                (widget, path) = (try await stack.newUser(), "/users/\(masuo.uid)/messages")
                try await setUpInbox(of: masuo, stack)
            case .withTheChatRules:
                let fork = Auth.Sessions.Fork(refreshToken: sazae.refreshToken, label: "widget")
                (widget, path) = (try await stack.call(fork, of: .auth), "/chats/c1/messages")
                let ids: JSONValue = ["first_user_id": .string(masuo.uid), "second_user_id": .string(sazae.uid)]
                try await stack.set("/chats/c1", ["ids": ids], as: masuo)
                let words = Notifier.QuickReplies.Set(texts: Self.words)
                _ = try await stack.call(words, of: .notifier, as: .user(idToken: sazae.idToken))
            }
            try await body(
                WidgetPhone(
                    chat: chat, stack: stack, firebase: firebase, masuo: masuo, sazae: sazae, widget: widget,
                    messages: TreePath(path)))
        }
    }

    private static func setUpInbox(of masuo: Auth.Session, _ stack: TestStack) async throws {
        let rules = """
            {"rules": {
              ".read": "auth != null",
              ".write": "auth != null",
              "users": {"\(masuo.uid)": {"messages": {".indexOn": "date"}}}
            }}
            """
        _ = try await stack.call(Messages.Rules.Set(rules: rules), of: .messages, as: .administrator)
        try await stack.set("/users/\(masuo.uid)", ["name": "マスオさん"], as: masuo)
        _ = try await stack.notify(
            Notifier.Triggers.Set(
                id: "inbox", pattern: "/users/{user}/messages/{message}", recipients: .init(uids: [masuo.uid]),
                notification: .init(title: "{after.senderName}さんからのメッセージ", body: "{after.text}")))
    }

    // MARK: Apps

    /// Writes a message with an app.
    func say(_ text: String, as user: Auth.Session, date: JSONValue = [".sv": "timestamp"]) async throws {
        let message: JSONValue = ["date": date, "senderId": .string(user.uid), "text": .string(text)]
        try await stack.push(messages.text, message, as: user)
    }

    /// The messages of the chat, in their order.
    func said() async throws -> [JSONValue] {
        let node = try await stack.call(Messages.Get(path: messages), of: .messages, as: .administrator)
        return node.value.object?.members.map(\.value) ?? []
    }

    // MARK: The widget

    private func call<Request: RPCRequest>(
        _ request: Request, of service: TestStack.Service
    ) async throws -> Request.Result {
        try await stack.call(request, of: service, as: .user(idToken: widget.idToken))
    }

    /// The newest message, read as `identity`.
    func newest(as identity: TestStack.Identity) async throws -> JSONValue? {
        let newest = TreeQuery(order: .child(try TreePath("date")), limit: .last(1))
        let found = try await stack.call(Messages.Get(path: messages, query: newest), of: .messages, as: identity)
        #expect(found.value.object?.members.count ?? 0 <= 1)
        return found.value.object?.members.first?.value
    }

    /// What the widget shows.
    func shown() async throws -> String {
        guard let newest = try await newest(as: .user(idToken: widget.idToken)),
            newest["senderId"] != .string(sazae.uid)
        else { return Self.nothingNew }
        return try #require(newest["text"]?.string)
    }

    /// The texts of the six buttons.
    func buttons() async throws -> [String] {
        switch chat {
        case .asInTheArticle: return Self.words
        case .withTheChatRules:
            // The tree is their one place.
            let node = Messages.Get(path: try TreePath("/users/\(sazae.uid)/quickReplies"))
            let texts = try await call(Notifier.QuickReplies.Get(locale: "ja-JP"), of: .notifier).texts
            #expect(try await call(node, of: .messages).value.array?.map(\.string) == texts)
            return texts
        }
    }

    /// Sends the text of a button; returns what the widget shows then.
    func tap(_ button: Int) async throws -> String {
        switch chat {
        case .asInTheArticle:
            let message: JSONValue = [
                "date": [".sv": "timestamp"], "senderId": .string(sazae.uid), "senderName": "extension-user",
                "text": .string(try await buttons()[button]),
            ]
            _ = try await call(Messages.Push(path: messages, value: message), of: .messages)
            return Self.sent
        case .withTheChatRules:
            // The app has had the push, and keeps its id for the widget.
            try await eventually("the push") { !firebase.messages(to: "sazae").isEmpty }
            let data = firebase.messages(to: "sazae").last?["data"]
            let hato = try JSONParser.parse(Array(#require(data?["hato"]?.string).utf8))
            var respond = Notifier.Respond(notification: try #require(hato["id"]?.string))
            respond.quickReply = button
            let result = try await call(respond, of: .notifier)
            return result.effect == .done ? Self.sent : "\(result)"
        }
    }
}

extension RepliesFromAWidget {
    @Test(arguments: WidgetChat.allCases)
    func widgetShowsTheNewestMessageThatIsNotMine(in chat: WidgetChat) async throws {
        try await WidgetPhone.run(chat) { phone in
            try await phone.say("いまから帰ります", as: phone.masuo)
            #expect(try await phone.shown() == "いまから帰ります")
            try await phone.say("おかえり", as: phone.sazae)
            try await phone.say("今夜はカレー?", as: phone.masuo)
            #expect(try await phone.shown() == "今夜はカレー?")
            var stranger = TestStack.Identity.nobody
            switch chat {
            case .asInTheArticle:
                // The newest by its date: not the one that was written last.
                try await phone.say("昨日の話", as: phone.masuo, date: 1)
                #expect(try await phone.shown() == "今夜はカレー?")
                let name = Messages.Get(path: try TreePath("/users/\(phone.masuo.uid)/name"))
                let widget = TestStack.Identity.user(idToken: phone.widget.idToken)
                #expect(try await phone.stack.call(name, of: .messages, as: widget).value == "マスオさん")
            case .withTheChatRules:
                stranger = .user(idToken: try await phone.stack.newUser().idToken)
            }
            let refused = await #expect(throws: RPCError.self) { try await phone.newest(as: stranger) }
            #expect(refused?.code == .permissionDenied)
        }
    }

    @Test(arguments: WidgetChat.allCases)
    func widgetSaysThatNothingIsNew(in chat: WidgetChat) async throws {
        try await WidgetPhone.run(chat) { phone in
            #expect(try await phone.shown() == WidgetPhone.nothingNew, "there is no message")
            try await phone.say("いまから帰ります", as: phone.masuo)
            #expect(try await phone.shown() != WidgetPhone.nothingNew)
            try await phone.say("おかえり", as: phone.sazae)
            #expect(try await phone.shown() == WidgetPhone.nothingNew, "the newest is mine")
        }
    }

    @Test(arguments: WidgetChat.allCases)
    func oneOfSixRepliesIsInTheChatAndTheOtherIsNotified(in chat: WidgetChat) async throws {
        try await WidgetPhone.run(chat) { phone in
            let (stack, firebase) = (phone.stack, phone.firebase)
            try await phone.say("いまから帰ります", as: phone.masuo)
            let buttons = try await phone.buttons()
            #expect(buttons == WidgetPhone.words && buttons.count == 6)
            #expect(try await phone.tap(5) == "メッセージを送信しました")
            let said = try await phone.said()
            #expect(said.map { $0["text"]?.string } == ["いまから帰ります", "あとで電話する"])
            let sender = chat == .asInTheArticle ? "extension-user" : "サザエ"
            #expect(said.last?["senderName"]?.string == sender && said.last?["senderId"]?.string == phone.sazae.uid)
            #expect(try await phone.shown() == WidgetPhone.nothingNew)

            try await eventually("the push of the reply") { !firebase.messages(to: "masuo").isEmpty }
            try await stack.settled()
            let pushes = firebase.messages(to: "masuo")
            // Where there are buttons, the app builds the notification of the data.
            let shown = pushes.first?["notification"] ?? pushes.first?["data"]
            #expect(pushes.count == 1 && shown?["body"] == "あとで電話する")
            #expect(shown?["title"]?.string == "\(sender)さんからのメッセージ")
            // サザエ's own phone had the message of マスオ, where the trigger is for both.
            #expect(firebase.messages(to: "sazae").count == (chat == .withTheChatRules ? 1 : 0))
        }
    }
}

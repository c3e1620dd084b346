import Foundation
import HatoModel
import HatoTesting
import Testing

/// The apps of the articles over the gateway: what their code sends with Firebase's API of the time, with their texts.
///
/// Tokens come from auth directly, by `GatewayStack.newToken`.
@Suite("Firebaseの記事のアプリをそのまま動かす", .timeLimit(.minutes(10)))
struct GatewayArticles {
    private static let rules: JSONValue = [
        "rules": [
            ".read": "auth != null", ".write": "auth != null",
            "users": ["$uid": ["messages": [".indexOn": "date"]]],
        ]
    ]

    /// チャットアプリを開かずに返信する(TodayExtension): the newest message by a query, and one of six replies by POST.
    @Test func theWidgetShowsTheNewestMessageAndSendsAReply() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let http = try PlainSocket(stack.gateway.address)
            let token = try stack.newToken().token
            let newest = "/users/masuo/messages.json?orderBy=%22date%22&limitToLast=1&auth=\(token)"
            func shown() throws -> String {
                let response = try HTTPResponseText.of("GET \(newest)", on: http)
                let messages = response.json?.object?.members.map(\.value) ?? []
                return messages.first?["text"]?.string ?? "新着メッセージはありません"
            }
            #expect(try shown() == "新着メッセージはありません")
            for (date, text) in [(2, "おかえりですー"), (1, "いまから帰ります")] {
                let message = #"{"date":\#(date),"senderName":"サザエ","text":"\#(text)"}"#
                let sent = try HTTPResponseText.of(
                    "POST /users/masuo/messages.json?auth=\(token)", body: message, on: http)
                #expect(sent.status == 200 && sent.json?["name"]?.string?.utf8.count == 20)
            }
            #expect(try shown() == "おかえりですー")
            let replies = ["はい", "いいえ", "いまどこ?", "ごはんできたよ", "気をつけてね", "あとで電話する"]
            for (index, reply) in replies.enumerated() {
                let message = #"{"date":\#(index + 3),"senderName":"マスオさん","text":"\#(reply)"}"#
                let sent = try HTTPResponseText.of(
                    "POST /users/masuo/messages.json?auth=\(token)", ["Content-Type: application/json"], body: message,
                    on: http)
                #expect(sent.status == 200)
                #expect(try shown() == reply)
            }
            #expect(try HTTPResponseText.of("GET /users/masuo/messages.json", on: http).status == 401)
        }
    }

    /// Firebaseを活用してチャットアプリを楽々プロトタイプ: observe, setValue, childByAutoId.
    @Test func thePrototypeObservesTheLatestMessage() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            var (masuo, tara) = (try FirebaseApp(stack), try FirebaseApp(stack))
            try masuo.signIn(stack.newToken())
            try tara.signIn(stack.newToken())
            #expect(try tara.observe("latest_message") == .null)
            let message: JSONValue = [
                "sender_user_name": "マスオ", "message_text": "いまから帰ります", "receiver_fcm_token": "token-1",
            ]
            try masuo.setValue("latest_message", message)
            #expect(try tara.nextPush() == .init(path: "latest_message", value: message))
            let key = masuo.pushKey()
            try masuo.setValue("messages/\(key)", ["text": "おかえりですー", "date": [".sv": "timestamp"]])
            let read = try tara.get("messages/\(key)")
            #expect(read["text"] == "おかえりですー" && read["date"]?.number ?? 0 > 1_700_000_000_000)
            try masuo.setValue("latest_message", .null)
            #expect(try tara.nextPush() == .init(path: "latest_message", value: .null))
        }
    }

    /// RxSwift（とFirebase）でチャットツールを書く: child_added of the newest messages, and send.
    @Test func theChatToolGetsEachMessageAsAChild() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            var (masuo, sazae) = (try FirebaseApp(stack), try FirebaseApp(stack))
            try masuo.signIn(stack.newToken())
            try sazae.signIn(stack.newToken())
            try masuo.setValue("messages/-a", ["name": "マスオ", "text": "こんにちは"])
            let query: JSONValue = ["l": 2, "vf": "r"]
            #expect(
                try sazae.observe("messages", query: query, tag: 1) == [
                    "-a": ["name": "マスオ", "text": "こんにちは"]
                ])
            for (key, text) in [("-b", "ごはんですよ"), ("-c", "今行きます👨‍👩‍👧")] {
                let message: JSONValue = ["name": "マスオ", "text": .string(text)]
                try masuo.setValue("messages/\(key)", message)
                let push = try sazae.nextPush()
                // The window moves: the third message comes with the end of the first.
                #expect(key == "-b" ? push.value == message : push.value == ["-a": .null, "-c": message])
                #expect(push.tag == 1)
            }
        }
    }

    /// Presence, as in Firebase's guide: `.info/connected` is the client's own, onDisconnect the server's.
    @Test func presenceEndsWithTheConnection() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            var (masuo, sazae) = (try FirebaseApp(stack), try FirebaseApp(stack))
            try masuo.signIn(stack.newToken())
            try sazae.signIn(stack.newToken())
            #expect(try sazae.observe("users/masuo/status") == .null)
            // The hello is what makes `.info/connected` true, and its time `.info/serverTimeOffset`.
            #expect(abs(Double(masuo.helloTime) / 1_000 - Date().timeIntervalSince1970) < 240)
            try masuo.onDisconnect("users/masuo/status", ["text": "オフライン", "at": [".sv": "timestamp"]])
            try masuo.setValue("users/masuo/status", ["text": "オンライン"])
            #expect(try sazae.nextPush().value == ["text": "オンライン"])
            masuo.cut()
            let left = try sazae.nextPush()
            #expect(left.path == "users/masuo/status" && left.value["text"] == "オフライン")
            #expect(left.value["at"]?.number ?? 0 > 1_700_000_000_000)
        }
    }
}

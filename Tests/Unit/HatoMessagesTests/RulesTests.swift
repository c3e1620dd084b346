import HatoModel
import HatoRPC
import HatoRules
import Testing

@testable import HatoMessages

/// Rules as clients meet them: what each method is let to do, what a refusal says, and how administrators find out why.
@Suite struct RulesTests {
    static let rules = """
        {
          "rules": {
            "chats": {
              "$chat": {
                ".read": "root.child('members/' + $chat + '/' + auth.uid).exists()",
                "messages": {
                  ".indexOn": "date",
                  "$message": {
                    ".write": "root.child('members').child($chat).child(auth.uid).val() == true && (!data.exists() || data.child('senderId').val() == auth.uid)",
                    ".validate": "newData.hasChildren(['text', 'date', 'senderId'])",
                    "text": {".validate": "newData.isString() && newData.val().length < 20"},
                    "date": {".validate": "newData.val() == now"},
                    "senderId": {".validate": "newData.val() == auth.uid"},
                    "$other": {".validate": false}
                  }
                },
                "latest": {".write": "newData.val() == null || newData.parent().child('messages').hasChild(newData.val())"}
              }
            },
            "members": {"$chat": {".write": "auth.token.admin === true"}},
            "pages": {".read": "query.orderByChild == 'date' && query.limitToLast <= 10", ".indexOn": "date"},
            "once": {"$key": {".write": "!data.exists()", ".read": true}}
          }
        }
        """

    static let now: Int64 = 1_795_000_000_000

    @Test func rulesAreReadAsTheyWereWrittenOrAsJSON() async throws {
        let text = """
            // Of the chat.
            {"rules": {".read": "auth
              != null", /* all */ "a": {".indexOn": ["b", "c",],},},}
            """
        try await RunningMessages.with(rules: text) { running in
            let client = running.administrator
            #expect(try await client.call(Messages.Rules.Get()).rules == text)
            #expect(try await client.call(Messages.Rules.Get(strict: false)).rules == text)
            let strict = try await client.call(Messages.Rules.Get(strict: true)).rules
            #expect(strict == #"{"rules":{".read":"auth\n  != null","a":{".indexOn":["b","c"]}}}"#)
            _ = try await client.call(Messages.Rules.Set(rules: strict))
            #expect(try await client.call(Messages.Rules.Get(strict: true)).rules == strict)
            let refused = await refusal { try await running.user("masuo").call(Messages.Rules.Get(strict: true)) }
            #expect(refused?.code == .permissionDenied)
        }
    }

    /// A service with a chat whose member is masuo.
    private static func with(_ body: (RunningMessages) async throws -> Void) async throws {
        try await RunningMessages.with(rules: rules, change: { $0.now = { now } }) { running in
            _ = try await running.administrator.call(
                Messages.Set(path: "/", value: ["members": ["c1": ["masuo": true]], "pages": ["p": ["date": 1]]]))
            try await body(running)
        }
    }

    static func message(_ text: JSONValue = "hi", by sender: JSONValue = "masuo") -> JSONValue {
        ["text": text, "date": [".sv": "timestamp"], "senderId": sender]
    }

    private static func isDenied(_ body: () async throws -> some Any) async -> Bool {
        await refusal(body)?.code == .permissionDenied
    }

    @Test func membersPostAndReadOthersDoNot() async throws {
        try await Self.with { running in
            let (masuo, katsuo) = (running.user("masuo"), running.user("katsuo"))
            let pushed = try await masuo.call(Messages.Push(path: "/chats/c1/messages", value: Self.message()))
            let path = try TreePath("/chats/c1/messages/\(pushed.key)")
            #expect(try await masuo.call(Messages.Get(path: path)).value["text"] == "hi")
            let found = try await masuo.call(
                Messages.Get(path: "/chats/c1/messages", query: TreeQuery(["orderBy": "date", "limitToLast": 1])))
            #expect(found.keys == [pushed.key.text])
            let denials = [
                await Self.isDenied { try await katsuo.call(Messages.Get(path: path)) },
                await Self.isDenied { try await running.client(nil).call(Messages.Get(path: path)) },
                await Self.isDenied { try await masuo.call(Messages.Get(path: "/chats")) },
                await Self.isDenied { try await masuo.call(Messages.Get(path: "/chats/c2")) },
                await Self.isDenied {
                    try await katsuo.call(
                        Messages.Push(path: "/chats/c1/messages", value: Self.message(by: "katsuo")))
                },
                await Self.isDenied { try await katsuo.call(Messages.Remove(path: path)) },
                await Self.isDenied { try await katsuo.subscribe(Messages.Listen(path: path)) },
                await Self.isDenied { try await masuo.subscribe(Messages.Listen(path: "/chats")) },
            ]
            #expect(denials == Array(repeating: true, count: denials.count))
            var events = EventReader(try await masuo.subscribe(Messages.Listen(path: "/chats/c1/messages")))
            _ = try await events.next()
            _ = try await masuo.call(Messages.Remove(path: path))
        }
    }

    @Test(
        arguments: [
            (message("a text that is much too long"), "/chats/c1/messages/m"), (message(5), "/chats/c1/messages/m"),
            (message(by: "katsuo"), "/chats/c1/messages/m"), (["text": "a"], "/chats/c1/messages/m"),
            (["text": "a", "date": 5, "senderId": "masuo"], "/chats/c1/messages/m"),
            ("more", "/chats/c1/messages/m/more"), ("a", "/chats/c1/messages/m/text"),
        ] as [(JSONValue, String)])
    func whatDoesNotFitIsRefused(value: JSONValue, path: String) async throws {
        try await Self.with { running in
            let path = try TreePath(path)
            let error = await refusal {
                try await running.user("masuo").call(Messages.Set(path: path, value: value))
            }
            #expect(error?.code == .permissionDenied && error?.data["path"] == .string(path.text))
            #expect(error?.data["trace"] == nil)
            #expect(try await running.administrator.call(Messages.Get(path: "/chats")).value == .null)
        }
    }

    @Test func oneRefusedPathRefusesTheWholeUpdate() async throws {
        try await Self.with { running in
            let masuo = running.user("masuo")
            let good: JSONObject = ["messages/m1": Self.message(), "latest": "m1"]
            let bad: JSONObject = ["messages/m1": Self.message(), "latest": "m2"]
            let error = await refusal { try await masuo.call(Messages.Update(path: "/chats/c1", values: bad)) }
            #expect(error?.data["path"] == "/chats/c1/latest")
            #expect(try await running.administrator.call(Messages.Get(path: "/chats")).value == .null)
            _ = try await masuo.call(Messages.Update(path: "/chats/c1", values: good))
            // The validation of the message holds for what stays, too; going as a whole is the message's own right.
            #expect(
                await Self.isDenied { try await masuo.call(Messages.Remove(path: "/chats/c1/messages/m1/text")) })
            _ = try await masuo.call(Messages.Update(path: "/chats/c1", values: ["messages/m1": nil, "latest": nil]))
        }
    }

    @Test func retriedPushIsAuthorisedLikeTheFirst() async throws {
        try await Self.with { running in
            let key = PushKey(milliseconds: Self.now, random: (1, 2))
            let masuo = running.user("masuo")
            let first = try await masuo.call(Messages.Push(path: "/once", value: 1, key: key))
            let again = try await masuo.call(Messages.Push(path: "/once", value: 1, key: key))
            #expect(again.key == first.key)
            #expect(await Self.isDenied { try await masuo.call(Messages.Push(path: "/once", value: 2, key: key)) })
        }
    }

    @Test func rulesAuthoriseQueriesByTheirParameters() async throws {
        try await Self.with { running in
            let client = running.user("masuo")
            let small = try TreeQuery(["orderBy": "date", "limitToLast": 10])
            let large = try TreeQuery(["orderBy": "date", "limitToLast": 11])
            #expect(try await client.call(Messages.Get(path: "/pages", query: small)).keys == ["p"])
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/pages", query: small)))
            _ = try await events.next()
            #expect(await Self.isDenied { try await client.call(Messages.Get(path: "/pages", query: large)) })
            #expect(await Self.isDenied { try await client.call(Messages.Get(path: "/pages")) })
            #expect(await Self.isDenied { try await client.subscribe(Messages.Listen(path: "/pages", query: large)) })
        }
    }

    @Test func administratorsGetTheTrace() async throws {
        try await Self.with { running in
            let check = Messages.Rules.Check(
                .set, at: "/chats/c1/messages/m1", value: Self.message(by: "katsuo"), as: .init(uid: "masuo"))
            let result = try await running.administrator.call(check)
            #expect(!result.allowed)
            #expect(result.trace.map(\.rule) == [".write", ".validate", ".validate", ".validate"])
            let last = try #require(result.trace.last)
            #expect(
                last.path == "/chats/c1/messages/m1/senderId" && last.failed?.expression == "newData.val() == auth.uid")
            #expect(last.failed?.line == 13)
            #expect(try await running.administrator.call(Messages.Get(path: "/chats")).value == .null)
            #expect(await Self.isDenied { try await running.user("masuo").call(check) })
            // The same refusal, sent to an administrator who speaks as the user.
            let params: JSONObject = [
                "path": "/chats/c1/messages/m1", "value": Self.message(by: "katsuo"), "as": ["uid": "masuo"],
            ]
            let error = await refusal {
                try await running.administrator.call(method: Messages.Set.method, params: params)
            }
            #expect(error?.code == .permissionDenied && error?.data["path"] == "/chats/c1/messages/m1")
            #expect(error?.data["trace"]?.array?.count == 4)
        }
    }

    @Test(
        arguments: [
            (.get, "/chats/c1", nil, "masuo", true), (.get, "/chats/c1", nil, nil, false),
            (.listen, "/chats/c1/messages", nil, "masuo", true), (.listen, "/chats", nil, "masuo", false),
            (.push, "/chats/c1/messages", message(), "masuo", true),
            (.push, "/chats/c1/messages", message(), "katsuo", false),
            (.update, "/chats/c1", ["messages/m": message(), "latest": "m"], "masuo", true),
            (.update, "/chats/c1", ["latest": "m"], "masuo", false),
            (.remove, "/chats/c1/latest", nil, nil, true), (.remove, "/members/c1", nil, "masuo", false),
        ] as [(Messages.Rules.Check.Operation, String, JSONValue?, String?, Bool)])
    func everyOperationCanBeChecked(
        operation: Messages.Rules.Check.Operation, path: String, value: JSONValue?, uid: String?, isAllowed: Bool
    ) async throws {
        try await Self.with { running in
            let check = Messages.Rules.Check(
                operation, at: try TreePath(path), value: value, as: uid.map { .init(uid: $0) })
            let result = try await running.administrator.call(check)
            #expect(result.allowed == isAllowed)
            #expect((result.trace.last?.result ?? false) == isAllowed)
        }
    }

    @Test func aCheckOfManyRulesListsTheLastOnes() async throws {
        let rules = #"{"rules": {".write": true, "a": {"$key": {".validate": "newData.val() != 7"}}}}"#
        try await RunningMessages.with(rules: rules, change: { $0.limits.refusalTraceMax = 20 }) { running in
            var values = JSONObject()
            for number in 0..<500 { values["k\(number + 1_000)"] = 1 }
            values["z"] = 7
            let check = Messages.Rules.Check(.set, at: "/a", value: .object(values), as: .init(uid: "masuo"))
            let result = try await running.administrator.call(check)
            #expect(!result.allowed)
            #expect(result.trace.count == 20 && result.traceLeftOut == 482)
            #expect(result.trace.last?.path == "/a/z")
        }
    }

    @Test func claimsDecide() async throws {
        try await Self.with { running in
            let speaker = Messages.Rules.Check.User(uid: "admin", token: ["admin": true])
            let check = Messages.Rules.Check(.set, at: "/members/c2", value: ["katsuo": true], as: speaker)
            let result = try await running.administrator.call(check)
            #expect(result.allowed)
        }
    }

    @Test func listenersAreAuthorisedAgainWhenRulesChange() async throws {
        try await Self.with { running in
            let masuo = running.user("masuo")
            var events = EventReader(try await masuo.subscribe(Messages.Listen(path: "/chats/c1")))
            _ = try await events.next()
            let other = Self.rules.replacing("auth.uid).exists()", with: "auth.uid).val() == false")
            _ = try await running.administrator.call(Messages.Rules.Set(rules: other))
            let last = try await events.nextNotification()
            #expect(last?.method == Messages.Cancelled.method && last?.params["reason"] == "permission_denied")
        }
    }

    // MARK: Large writes, which are authorised before their turn

    static let largeRules = """
        {
          "rules": {
            "open": {".write": "auth.uid == 'sazae'"},
            "list": {
              ".write": "root.child('open').val() == true",
              "$key": {".validate": "newData.isNumber() && newData.val() >= 0"}
            },
            "last": {".write": true}
          }
        }
        """

    static func list(_ count: Int, first: JSONValue = 0) -> JSONValue {
        var list = JSONObject()
        list.append("k", first)
        for index in 0..<count { list.append("k\(index)", .number(Double(index))) }
        return .object(list)
    }

    @Test func largeWritesAreValidatedAtEveryNode() async throws {
        try await RunningMessages.with(rules: Self.largeRules) { running in
            _ = try await running.administrator.call(Messages.Set(path: "/open", value: true))
            let client = running.user("masuo")
            let isDenied = await Self.isDenied {
                try await client.call(Messages.Set(path: "/list", value: Self.list(5_000, first: -1)))
            }
            #expect(isDenied)
            _ = try await client.call(Messages.Set(path: "/list", value: Self.list(5_000)))
            let keys = try await running.administrator.call(Messages.Get(path: "/list", form: .shallow)).value
            #expect(keys.object?.count == 5_001)
        }
    }

    @Test func writesBehindALargeOneKeepTheirOrder() async throws {
        try await RunningMessages.with(rules: Self.largeRules) { running in
            let lines = try await RawLines.connect(running)
            func send(_ method: String, _ params: JSONObject, id: Int) async throws {
                var params = params
                params["auth"] = "admin"
                var writer = JSONWriter()
                writer.write(
                    ["jsonrpc": "2.0", "id": .number(Double(id)), "method": .string(method), "params": .object(params)]
                        as JSONValue)
                try await lines.send(String(decoding: writer.bytes, as: UTF8.self))
            }
            var id = 0
            for round in 0..<10 {
                let values: [JSONValue] = [
                    Self.list(5_000), 1, Self.list(3_000), Self.list(4_000), 2, .number(Double(100 + round)),
                ]
                for value in values {
                    id += 1
                    try await send(Messages.Set.method, ["path": "/last", "value": value], id: id)
                }
                id += 1
                try await send(Messages.Get.method, ["path": "/last"], id: id)
                var versions: [Double] = []
                for _ in values { versions.append(try await lines.next()["result"]?["version"]?.number ?? 0) }
                #expect(versions == versions.sorted() && Set(versions).count == values.count, "round \(round)")
                #expect(try await lines.next()["result"]?["value"] == .number(Double(100 + round)))
            }
            lines.close()
        }
    }

    /// Whatever is written between authorisation and write: no list is written after the rules deny it.
    @Test func largeWritesAreAuthorisedAgainWhenTheirReadsChanged() async throws {
        try await RunningMessages.with(rules: Self.largeRules) { running in
            let (sazae, masuo) = (running.user("sazae"), running.user("masuo"))
            var (written, refused) = (0, 0)
            for round in 0..<12 {
                let opened = try await sazae.call(Messages.Set(path: "/open", value: true)).version
                let value = Self.list(4_000, first: .number(Double(100 + round)))
                async let list = try? masuo.call(Messages.Set(path: "/list", value: value)).version
                for _ in 0..<(round % 4) { _ = try await sazae.call(Messages.Set(path: "/last", value: .number(1))) }
                let closed = try await sazae.call(Messages.Set(path: "/open", value: false)).version
                if let version = await list {
                    #expect(version > opened && version < closed, "round \(round)")
                    written += 1
                } else {
                    refused += 1
                }
            }
            #expect(written + refused == 12)
        }
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoNotifier

/// Every refusal names the parameter and what is right, and nothing of the call is done.
@Suite(.timeLimit(.minutes(10)))
struct RefusedCallTests {
    private static func sending(options: JSONObject) -> JSONObject {
        ["to": ["uids": ["u1"]], "notification": ["title": "a"], "options": .object(options)]
    }

    /// Right types with wrong contents, most beside members that are right.
    private static let wrongContents: [(method: String, params: JSONObject, parameter: String)] = [
        ("notifier.devices.register", ["platform": "webhook", "url": "ftp://example.com/", "uid": "u1"], "url"),
        (
            "notifier.devices.register",
            ["platform": "webhook", "url": "https://example.com/", "uid": "u1", "secret": "x"], "secret"
        ),
        ("notifier.devices.register", ["platform": "webhook", "url": "https://example.com/", "uid": "\n"], "uid"),
        ("notifier.devices.register", ["platform": "apns", "url": "https://example.com/", "uid": "u1"], "url"),
        ("notifier.devices.register", ["platform": "pigeon", "url": "https://example.com/", "uid": "u1"], "platform"),
        ("notifier.devices.list", ["limit": 0], "limit"),
        ("notifier.devices.rotateSecret", ["device": "d1", "secret": "whsec_"], "secret"),
        ("notifier.dead.drop", [:], "deliveries"),
        ("notifier.dead.drop", ["deliveries": ["d1"], "all": true], "deliveries"),
        ("notifier.dead.list", ["after": "/"], "after"),
        (
            "notifier.send",
            ["to": ["uids": ["u1"]], "notification": ["title": "a"], "options": ["ttlSeconds": -1]],
            "options.ttlSeconds"
        ),
        ("notifier.send", sending(options: ["thread": ""]), "options.thread"),
        ("notifier.send", sending(options: ["thread": "a\n"]), "options.thread"),
        ("notifier.send", sending(options: ["thread": .string(String(repeating: "t", count: 257))]), "options.thread"),
        ("notifier.send", sending(options: ["sound": ""]), "options.sound"),
        ("notifier.send", sending(options: ["badge": -1]), "options.badge"),
        ("notifier.send", sending(options: ["badge": 100_000]), "options.badge"),
        (
            "notifier.send",
            ["to": ["uids": ["u1"]], "notification": ["title": "a"], "platforms": ["webpush": ["ttl": 5]]], "platforms"
        ),
        (
            "notifier.devices.register",
            ["platform": "webhook", "url": "https://example.com/", "uid": "u1", "app": ""], "app"
        ),
        (
            "notifier.devices.register",
            ["platform": "webhook", "url": "https://example.com/", "uid": "u1", "locale": ""], "locale"
        ),
        ("notifier.send", ["to": [:], "notification": ["title": "a"]], "to"),
        ("notifier.send", ["to": ["uids": ["u1"]], "notification": [:]], "notification"),
        (
            "notifier.triggers.set",
            [
                "id": "t", "pattern": "/a/{b}", "on": ["created"], "recipients": ["uids": ["u1"]],
                "notification": ["title": "{nothing}"],
            ], "notification.title"
        ),
        (
            "notifier.triggers.set",
            [
                "id": "t", "pattern": "/a/{b}", "on": ["created"], "recipients": ["uids": ["u1"]],
                "notification": ["title": "a"], "when": "(",
            ], "when"
        ),
        ("notifier.preferences.set", ["uid": "u1", "timeZone": "Asia/Nowhere"], "timeZone"),
        ("notifier.preferences.set", ["uid": "u1", "timeZone": "PST"], "timeZone"),
        ("notifier.preferences.set", ["timeZone": "UTC"], "uid"),
        (
            "notifier.preferences.set",
            ["uid": "u1", "quiet": [["days": ["mon", "monday"], "from": "22:00", "to": "07:00", "mode": "hold"]]],
            "quiet.0.days.1"
        ),
        (
            "notifier.preferences.set",
            ["uid": "u1", "quiet": [["days": [], "from": "22:00", "to": "07:00", "mode": "hold"]]], "quiet.0.days"
        ),
        (
            "notifier.preferences.set",
            ["uid": "u1", "quiet": [["days": ["mon"], "from": "24:00", "to": "07:00", "mode": "hold"]]],
            "quiet.0.from"
        ),
        (
            "notifier.preferences.set",
            ["uid": "u1", "quiet": [["days": ["mon"], "from": "22:00", "to": "7:00", "mode": "hold"]]], "quiet.0.to"
        ),
        (
            "notifier.preferences.set",
            ["uid": "u1", "quiet": [["days": ["mon"], "from": "22:00", "to": "07:00", "mode": "loud"]]],
            "quiet.0.mode"
        ),
        ("notifier.preferences.set", ["uid": "u1", "mutes": ["": true]], "mutes"),
        ("notifier.preferences.set", ["uid": "u1", "mutes": ["c1": false]], "mutes.c1"),
        ("notifier.preferences.set", ["uid": "u1", "mutes": ["c1": -1]], "mutes.c1"),
        ("notifier.preferences.set", ["uid": "u1", "off": ["pigeon"]], "off.0"),
        (
            "notifier.send",
            ["to": ["uids": ["u1"]], "notification": ["title": "a"], "options": ["summary": "many"]],
            "options.summary"
        ),
        (
            "notifier.triggers.set",
            [
                "id": "t", "pattern": "/a/{b}", "on": ["created"], "recipients": ["uids": ["u1"]],
                "notification": ["title": "a"], "presenceAt": "/viewing/{b}",
            ], "presenceAt"
        ),
        (
            "notifier.triggers.set",
            [
                "id": "t", "pattern": "/a/{b}", "on": ["created"], "recipients": ["uids": ["u1"]],
                "notification": ["title": "a"], "presenceAt": "/viewing/{uid}/{other}",
            ], "presenceAt"
        ),
    ]

    @Test func refusedCallsSayWhatIsRightAndDoNothing() async throws {
        let notifier = try await TestNotifier.start()
        try await notifier.addDevice(of: "u1", at: "http://127.0.0.1:9/hook")
        let before = try await rows(notifier.store)
        for call in try Notifier.methods.flatMap(wrongTypes) + Self.wrongContents {
            let name = "\(call.method), \(call.params)"
            do {
                _ = try await notifier.client.call(method: call.method, params: call.params)
                Issue.record("\(name) was not refused")
            } catch let error as RPCError {
                #expect(error.code == .invalidParams || error.code == .invalidArgument, "\(name): \(error)")
                #expect(error.data["parameter"]?.string == call.parameter, "\(name): \(error)")
                let method = Notifier.methods.first { $0.method == call.method }
                #expect(method?.declares(error) == true, "\(name): \(error)")
                #expect(call.parameter == "secret" || error.message.contains("e.g. "), "\(name): \(error.message)")
            }
        }
        #expect(try await rows(notifier.store) == before)
        await notifier.stop()
    }

    /// A value of another type for each parameter, and a parameter that there is not.
    private func wrongTypes(_ method: any RPCRequest.Type) throws -> [(String, JSONObject, String)] {
        func calls<Request: RPCRequest>(_: Request.Type) throws -> [(String, JSONObject, String)] {
            let example = Request.example.request.members
            let properties = try #require(Request.schema["properties"]?.object)
            // What has no type takes any value.
            let typed = properties.members.filter { $0.value["type"] != nil }
            return (typed + [JSONObject.Member("noSuch", [:])]).map { member in
                var params = example
                params[member.name] = member.value["type"] == "array" ? 5 : [5]
                return (Request.method, params, member.name)
            }
        }
        return try calls(method)
    }

    private func rows(_ store: any Store) async throws -> [[UInt8]: [UInt8]] {
        try await store.read { snapshot in
            var all: [[UInt8]: [UInt8]] = [:]
            try snapshot.scan(KeyRange(lower: [], upper: nil), reverse: false) { key, value in
                all[key.withUnsafeBufferPointer { Array($0) }] = value.withUnsafeBufferPointer { Array($0) }
                return .next
            }
            return all
        }
    }
}

import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

/// Messages that are read on another device, or taken back, with the rules and the trigger of chats that come along.
@Suite(.timeLimit(.minutes(10))) struct ReadChats {
    @Test func whatIsReadOrTakenBackGoesFromThePhone() async throws {
        try await withFirebase(["--rules", "chat", "--triggers", "chat"]) { stack, firebase in
            let (masuo, tara) = (try await stack.newUser(), try await stack.newUser())
            var register = Notifier.Devices.Register(platform: .fcm)
            register.token = "token-tara"
            let client = stack.client(.notifier, as: .user(idToken: tara.idToken))
            _ = try await client.call(register)
            var members: JSONObject = [:]
            (members[masuo.uid], members[tara.uid]) = ("admin", "member")
            try await stack.set("/chats/c1", ["members": .object(members)], as: masuo)
            /// A message of masuo with its count, and the push that comes of it.
            func write(_ id: String) async throws -> JSONValue {
                let count = firebase.messages.count
                try await stack.set("/chats/c1/unread/\(tara.uid)", 1, as: masuo)
                try await stack.set(
                    "/chats/c1/messages/\(id)",
                    ["date": [".sv": "timestamp"], "senderId": .string(masuo.uid), "text": .string(id)], as: masuo)
                try await eventually("the push of \(id)") { firebase.messages.count > count }
                return try #require(firebase.messages.last)
            }
            func withdrawn(after count: Int) async throws -> JSONValue {
                try await eventually("the silent push") { firebase.messages.count > count }
                let message = try #require(firebase.messages.last)
                #expect(message["notification"] == nil && message["android"]?["priority"] == "NORMAL")
                return try JSONParser.parse(Array((message["data"]?["hato"]?.string ?? "").utf8))
            }
            let first = try await write("m1")
            #expect(first["data"]?["body"] == "m1" && first["apns"]?["payload"]?["aps"]?["badge"] == 1)
            // Read on another device.
            try await stack.set("/chats/c1/unread/\(tara.uid)", 0, as: tara)
            let read = try await withdrawn(after: 1)
            #expect(read["withdraw"]?.array?.count == 1 && read["threads"] == ["c1"] && read["badge"] == 0)
            #expect(try await client.call(Notifier.Badges.Get()) == .init(badge: 0, threads: [:]))
            // Taken back by its author.
            _ = try await write("m2")
            #expect(try await client.call(Notifier.Badges.Get()) == .init(badge: 1, threads: ["c1": 1]))
            try await stack.set("/chats/c1/messages/m2", .null, as: masuo)
            let back = try await withdrawn(after: 3)
            #expect(back["withdraw"]?.array?.count == 1 && back["withdraw"] != read["withdraw"])
            try await stack.settled()
            #expect(firebase.messages.count == 4)
            await client.close()
        }
    }
}

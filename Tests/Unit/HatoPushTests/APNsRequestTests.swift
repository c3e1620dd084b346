import HatoModel
import Testing

@testable import HatoPush

@Suite struct APNsRequestTests {
    private static let now: Int64 = 1_795_000_000_500
    private static let token = String(repeating: "0a", count: 32)

    private func delivery(
        title: String? = nil, body: String? = nil, _ change: (inout DeliveryContent) -> Void = { _ in }
    ) throws -> Delivery {
        var content = DeliveryContent(
            notification: "ntf_1", device: "dev_1", uid: "u2", text: .init(title: title, body: body))
        change(&content)
        let device = try APNsDevice(token: Self.token, environment: .production)
        var delivery = Delivery(id: "ntf_1-0", address: .apns(device), content: content, createdAt: Self.now)
        delivery.expiresAt = Self.now + 60_000
        return delivery
    }

    private func request(
        title: String? = nil, body: String? = nil, _ change: (inout DeliveryContent) -> Void = { _ in }
    ) throws -> APNsRequest {
        try request(delivery(title: title, body: body, change))
    }

    private func request(_ delivery: Delivery) throws -> APNsRequest {
        let device = try APNsDevice(token: Self.token, environment: .production)
        return try APNsRequest(delivery, to: device, topic: "com.example.chat", now: Self.now)
    }

    private func text(_ request: APNsRequest) -> String { String(decoding: request.payload, as: UTF8.self) }

    private func members(_ text: String) throws -> Notifier.PlatformMembers {
        var members = Notifier.PlatformMembers()
        members.apns = try JSONParser.parse(Array(text.utf8))
        return members
    }

    // MARK: Payload

    @Test func aBodyWithACategoryIsThePayloadOfTheArticle() throws {
        let request = try request(body: "ぼくと結婚してください!") {
            $0.appearance.category = .init(id: "MARRY_ME", actions: [.init(id: "yes", title: "はい")])
        }
        #expect(text(request) == #"{"aps":{"alert":"ぼくと結婚してください!","category":"MARRY_ME"}}"#)
    }

    @Test func everyAppearanceHasItsMember() throws {
        let request = try request(title: "マスオさん", body: "ただいま") {
            $0.appearance.badge = 3
            $0.appearance.sound = "default"
            $0.appearance.thread = "c1"
            $0.appearance.category = .init(id: "REPLY", actions: [])
            $0.appearance.image = "https://example.com/i.png"
            $0.appearance.link = "https://example.com/c1"
            $0.appearance.interruptionLevel = .timeSensitive
            $0.data = ["chat": "c1", "link": "own", "aps": "never"]
        }
        #expect(
            try JSONParser.parse(request.payload) == [
                "aps": [
                    "alert": ["title": "マスオさん", "body": "ただいま"], "badge": 3, "sound": "default", "thread-id": "c1",
                    "category": "REPLY", "mutable-content": 1, "interruption-level": "time-sensitive",
                ],
                "chat": "c1", "link": "own", "image": "https://example.com/i.png",
            ])
    }

    @Test func aTitleAloneIsATitle() throws {
        #expect(text(try request(title: "t")) == #"{"aps":{"alert":{"title":"t"}}}"#)
    }

    @Test func withoutTextItIsAPushInTheBackground() throws {
        let silent = try request {
            $0.data = ["removed": "ntf_0"]
            $0.appearance.sound = "default"
            $0.appearance.link = "https://example.com/"
        }
        #expect(text(silent) == #"{"aps":{"content-available":1},"removed":"ntf_0"}"#)
        #expect(silent.headers["apns-push-type"] == "background" && silent.headers["apns-priority"] == "5")
    }

    /// APNs wants nothing but `content-available` of a push in the background.
    @Test func aBadgeAloneIsShown() throws {
        let badge = try request { $0.appearance.badge = 0 }
        #expect(text(badge) == #"{"aps":{"badge":0,"content-available":1}}"#)
        #expect(badge.headers["apns-push-type"] == "alert" && badge.headers["apns-priority"] == "5")
    }

    @Test func membersOfThePlatformTakeThePlaceOfWhatIsMade() throws {
        let given = try members(
            #"""
            {"headers": {"apns-priority": "1", "apns-collapse-id": "k", "apns-expiration": "0", "authorization": "x",
            "apns-id": "mine", "x-other": "y"},
            "aps": {"badge": 9, "alert": {"launch-image": "i"}, "target-content-id": "c1"},
            "payload": {"chat": {"id": 1}, "aps": {}}, "unknown": 1}
            """#)
        let request = try request(body: "b") {
            $0.platforms = given
            $0.data = ["chat": "c1", "a": "b"]
            $0.appearance.badge = 1
        }
        #expect(
            try JSONParser.parse(request.payload) == [
                "aps": ["alert": ["body": "b", "launch-image": "i"], "badge": 9, "target-content-id": "c1"],
                "chat": ["id": 1], "a": "b",
            ])
        #expect(request.headers["apns-priority"] == "1" && request.headers["apns-collapse-id"] == "k")
        #expect(request.headers["apns-expiration"] == "0")
        #expect(request.headers["apns-id"] == APNsRequest.identifier(of: "ntf_1-0"))
        #expect(request.headers["authorization"] == nil && request.headers["x-other"] == nil)
    }

    @Test func anAlertOfThePlatformAloneIsShown() throws {
        let given = try members(#"{"aps": {"alert": {"loc-key": "k"}}}"#)
        let request = try request { $0.platforms = given }
        #expect(request.headers["apns-push-type"] == "alert" && request.headers["apns-priority"] == "10")
        #expect(text(request) == #"{"aps":{"alert":{"loc-key":"k"}}}"#)
        let sound = try members(#"{"aps": {"sound": "default"}}"#)
        #expect(text(try self.request { $0.platforms = sound }) == #"{"aps":{"sound":"default"}}"#)
    }

    // MARK: Headers

    @Test func theHeadersAreThoseOfTheSpecification() throws {
        let request = try request(title: "t")
        #expect(request.path == "/3/device/\(Self.token)")
        #expect(
            request.headers == [
                "apns-topic": "com.example.chat", "apns-push-type": "alert", "apns-priority": "10",
                "apns-expiration": "1795000060", "apns-id": APNsRequest.identifier(of: "ntf_1-0"),
                "apns-collapse-id": "ntf_1",
            ])
        #expect(try self.request(title: "t") { $0.appearance.priority = .normal }.headers["apns-priority"] == "5")
    }

    @Test func theIdentifierIsAUUIDOfTheDelivery() throws {
        let identifier = APNsRequest.identifier(of: "ntf_1-0")
        #expect(identifier == "66d7f61f-b493-8507-973b-c7e3e174be88")
        let parts = identifier.split(separator: "-").map(\.utf8.count)
        #expect(parts == [8, 4, 4, 4, 12] && identifier == identifier.lowercased())
        #expect(identifier != APNsRequest.identifier(of: "ntf_1-1"))
    }

    @Test func expirationIsInSecondsAndAlwaysThere() throws {
        for (expiresAt, seconds) in [
            (Self.now + 1_499, "1795000001"), (Self.now + 100, "0"), (Self.now - 5_000, "0"), (0, "0"),
            (Int64.max, "1797592000"), (Int64.min, "0"),
        ] {
            var delivery = try delivery(title: "t")
            delivery.expiresAt = expiresAt
            #expect(try request(delivery).headers["apns-expiration"] == seconds)
        }
    }

    @Test func aCollapseIdThatIsNoHeaderIsHashed() throws {
        let long = String(repeating: "k", count: 65)
        for (key, isKept) in [("k", true), (String(repeating: "k", count: 64), true), (long, false), ("部屋", false)] {
            let header = try #require(try request(title: "t") { $0.collapseKey = key }.headers["apns-collapse-id"])
            #expect((header == key) == isKept && header.utf8.count <= 64)
        }
        let one = try request(title: "t") { $0.collapseKey = long }.headers["apns-collapse-id"]
        let other = try request(title: "t") { $0.collapseKey = long + "k" }.headers["apns-collapse-id"]
        #expect(one != other)
    }

    @Test func aTypeOfPushHasItsTopic() throws {
        let given = try members(#"{"headers": {"apns-push-type": "liveactivity"}}"#)
        let request = try request(title: "t") { $0.platforms = given }
        #expect(request.topic == "com.example.chat.push-type.liveactivity")
        #expect(request.headers["apns-topic"] == request.topic)
    }

    @Test(arguments: ["com.example.other", "com.example.chat.any", "com.example.chats"])
    func theTopicOfAnotherAppIsRefused(_ topic: String) throws {
        let given = try members(#"{"headers": {"apns-topic": "\#(topic)"}}"#)
        #expect(throws: APNsRequest.Problem.otherTopic) {
            _ = try request(title: "t") { $0.platforms = given }
        }
    }

    // MARK: Size

    private static let family = "👨‍👩‍👧‍👦"
    private static let flag = "🇯🇵"

    /// `{"aps":{"alert":""}}` has 20 bytes.
    @Test func aPayloadOfTheLimitIsWhole() throws {
        let body = String(repeating: "x", count: 4_096 - 20 - 25) + Self.family
        #expect(Self.family.utf8.count == 25)
        let request = try request(body: body)
        #expect(request.payload.count == 4_096)
        #expect(try JSONParser.parse(request.payload)["aps"]?["alert"]?.string == body)
    }

    @Test func oneByteMoreTakesTheWholeFamily() throws {
        let plain = String(repeating: "x", count: 4_097 - 20 - 25)
        let request = try request(body: plain + Self.family)
        #expect(try JSONParser.parse(request.payload)["aps"]?["alert"]?.string == plain + "…")
    }

    @Test(arguments: [family, flag, "👋🏽", "が", "\u{304B}\u{3099}", "\"", "\u{1}", "❤️‍🔥"])
    func aLongTextIsCutBetweenCharacters(_ character: String) throws {
        for offset in 0..<8 {
            let body = String(repeating: "a", count: offset) + String(repeating: character, count: 2_100)
            let request = try request(title: "t", body: body)
            let cut = try #require(try JSONParser.parse(request.payload)["aps"]?["alert"]?["body"]?.string)
            let kept = cut.dropLast()
            #expect(cut.hasSuffix("…") && body.prefix(kept.count).utf8.elementsEqual(kept.utf8))
            // Another character would not have fitted.
            let escaped = JSONValue.string(character).encoded.count - 2
            #expect(request.payload.count <= 4_096 && request.payload.count + escaped > 4_096)
        }
    }

    @Test func theImageGoesBeforeTheText() throws {
        let body = String(repeating: "あ", count: 1_300)
        let request = try request(body: body) {
            $0.appearance.image = "https://example.com/" + String(repeating: "i", count: 300)
            $0.appearance.link = "https://example.com/c1"
        }
        let payload = try JSONParser.parse(request.payload)
        #expect(payload["image"] == nil && payload["aps"]?["mutable-content"] == nil)
        #expect(payload["aps"]?["alert"]?.string == body && payload["link"] != nil)
    }

    @Test func theLinkGoesWhenTheTextIsNotEnough() throws {
        let request = try request(body: "b") {
            $0.appearance.link = "https://example.com/" + String(repeating: "l", count: 1_000)
            $0.data = ["x": String(repeating: "x", count: 3_500)]
        }
        #expect(try JSONParser.parse(request.payload)["link"] == nil)
    }

    @Test func dataOfATypeBeyondTheLimitAreRefused() throws {
        #expect(throws: APNsRequest.Problem.payloadTooLarge) {
            _ = try request(body: "b") {
                $0.data = ["transition_type": "t", "x": String(repeating: "x", count: 4_096)]
            }
        }
    }

    /// What the author of a change wrote must not cost the text.
    @Test(arguments: ["x", "\"", "\u{1}", "あ"])
    func theLongestDataOfATriggerGoBeforeTheText(_ character: String) throws {
        let request = try request(title: "t", body: "b") { content in
            content.trigger = "chat"
            content.data = [
                "chat": "c1", "short": "s", "long": String(repeating: "y", count: 1_900),
                "longest": String(repeating: character, count: 3_500 / character.utf8.count),
            ]
            content.hato.id = "ntf_1"
        }
        let payload = try JSONParser.parse(request.payload)
        #expect(payload["aps"]?["alert"] == ["title": "t", "body": "b"])
        #expect(payload["hato"] == ["id": "ntf_1", "incomplete": true])
        #expect(payload["chat"] == "c1" && payload["short"] == "s" && payload["longest"] == nil)
        #expect(payload["long"]?.string?.utf8.count == 1_900)
    }

    @Test func aTextThatSaysSomethingIsCutForData() throws {
        let request = try request(title: "t", body: String(repeating: "b", count: 900)) {
            $0.trigger = "chat"
            $0.data = ["x": String(repeating: "x", count: 3_500)]
        }
        let payload = try JSONParser.parse(request.payload)
        #expect(payload["x"] != nil && payload["hato"] == nil)
        #expect(payload["aps"]?["alert"]?["body"]?.string?.hasSuffix("…") == true)
    }

    /// Callers see what fits nowhere as a dead letter.
    @Test func dataOfASendStayWhole() throws {
        #expect(throws: APNsRequest.Problem.payloadTooLarge) {
            _ = try request(body: "b") { $0.data = ["x": String(repeating: "x", count: 4_096)] }
        }
        let full = try request(body: "b") { $0.data = ["x": String(repeating: "x", count: 4_000)] }
        #expect(try JSONParser.parse(full.payload)["x"] != nil)
    }

    @Test func manyShortValuesOfATriggerGoTogether() throws {
        let data = Dictionary(uniqueKeysWithValues: (0..<1_000).map { ("\($0)", "v") })
        let request = try request(body: "b") { content in
            content.trigger = "chat"
            content.data = data
        }
        let payload = try #require(try JSONParser.parse(request.payload).object)
        #expect(request.payload.count <= 4_096 && payload["hato"] == ["incomplete": true])
        #expect(payload["aps"]?["alert"] == "b" && payload.count > 100)
    }

    // MARK: Members

    @Test(arguments: [
        (#"[]"#, "platforms.apns should be an object"),
        (
            #"{"header": {}}"#,
            "platforms.apns.header is not known; platforms.apns has the members aps, headers, payload"
        ),
        (#"{"headers": {"authorization": "x"}}"#, "platforms.apns.headers.authorization is not known"),
        (#"{"headers": {"apns-id": "x"}}"#, "platforms.apns.headers.apns-id is not known"),
        (#"{"headers": {"apns-priority": 5}}"#, "platforms.apns.headers.apns-priority should be one of 10, 5, 1"),
        (#"{"headers": {"apns-push-type": "call"}}"#, "platforms.apns.headers.apns-push-type should be one of alert"),
        (#"{"headers": {"apns-expiration": "01"}}"#, "platforms.apns.headers.apns-expiration should be seconds"),
        (#"{"headers": {"apns-collapse-id": "部屋"}}"#, "platforms.apns.headers.apns-collapse-id should be 1 to 64"),
        (#"{"headers": {"apns-topic": "a b"}}"#, "platforms.apns.headers.apns-topic should be the bundle id"),
        (
            #"{"headers": {"apns-push-type": "background", "apns-priority": "10"}}"#,
            "platforms.apns.headers.apns-priority should be 5"
        ),
        (#"{"aps": {"alerts": "x"}}"#, "platforms.apns.aps.alerts is not known"),
        (#"{"aps": {"alert": 1}}"#, "platforms.apns.aps.alert should be a string or an object"),
        (#"{"aps": {"alert": {"titel": "x"}}}"#, "platforms.apns.aps.alert.titel is not known"),
        (#"{"aps": {"alert": {"loc-args": [1]}}}"#, "platforms.apns.aps.alert.loc-args[0] should be a string"),
        (#"{"aps": {"badge": -1}}"#, "platforms.apns.aps.badge should be an integer from 0"),
        (#"{"aps": {"sound": {"volume": 2}}}"#, "platforms.apns.aps.sound.volume should be a number from 0.0 to 1.0"),
        (#"{"aps": {"mutable-content": true}}"#, "platforms.apns.aps.mutable-content should be an integer"),
        (#"{"aps": {"interruption-level": "loud"}}"#, "platforms.apns.aps.interruption-level should be one of passive"),
        (#"{"payload": {"aps": {}}}"#, "platforms.apns.payload.aps is not known"),
        (#"{"payload": 1}"#, "platforms.apns.payload should be an object"),
    ])
    func aWrongMemberIsRefusedWithItsPath(_ text: String, _ message: String) throws {
        let value = try JSONParser.parse(Array(text.utf8))
        do {
            try APNsRequest.check(platformMembers: value)
            Issue.record("\(text) is taken")
        } catch {
            #expect(error.reason == "invalid_platform_member" && error.message.hasPrefix(message), "\(error.message)")
        }
    }

    @Test func rightMembersAreTaken() throws {
        let text = #"""
            {"headers": {"apns-topic": "com.example.chat.voip", "apns-push-type": "voip", "apns-priority": "10",
            "apns-expiration": "0", "apns-collapse-id": "k"},
            "aps": {"alert": {"title-loc-key": "k", "title-loc-args": ["a"]}, "sound": {"critical": 1, "name": "n",
            "volume": 0.5}, "badge": 0, "relevance-score": 1, "content-state": {"any": [1]}, "event": "end"},
            "payload": {"own": {"a": [1]}}}
            """#
        try APNsRequest.check(platformMembers: try JSONParser.parse(Array(text.utf8)))
        try APNsRequest.check(platformMembers: [:])
        let long = JSONValue.object(["payload": ["x": .string(String(repeating: "x", count: 3_072))]])
        #expect(throws: ArgumentError.self) { try APNsRequest.check(platformMembers: long) }
    }

    @Test func theNameOfApplesMemberIsRefusedInData() throws {
        try APNsRequest.check(data: ["chat": "c1"])
        #expect(throws: ArgumentError.self) { try APNsRequest.check(data: ["aps": "x"]) }
    }
}

import HatoModel
import Testing

@testable import HatoPush

@Suite struct FCMRequestTests {
    private static let now: Int64 = 1_795_000_000_000

    private func delivery(
        _ text: Notifier.NotificationText, _ change: (inout DeliveryContent) -> Void = { _ in }
    ) -> Delivery {
        var content = DeliveryContent(notification: "ntf_1", device: "dev_1", uid: "u2", text: text)
        change(&content)
        var delivery = Delivery(id: "ntf_1-0", address: .fcm(.token("t")), content: content, createdAt: Self.now)
        delivery.expiresAt = Self.now + 3_600_000
        return delivery
    }

    private func message(
        _ text: Notifier.NotificationText, _ change: (inout DeliveryContent) -> Void = { _ in }
    ) throws -> JSONValue {
        let request = try #require(FCMRequest(delivery(text, change), to: .token("t"), now: Self.now))
        let json = try JSONParser.parse(request.body)
        #expect(json.object?.count == 1)
        return try #require(json["message"])
    }

    private static let image = "https://chat.example.com/i.png"
    private static let link = "https://chat.example.com/c1"

    @Test func aMessageHasWhatEachPlatformNeeds() throws {
        let message = try message(.init(title: "マスオさん", body: "ただいま 🍶")) { content in
            content.data = ["chat": "c1"]
            content.collapseKey = "room:c1"
            content.appearance.badge = 3
            content.appearance.sound = "default"
            content.appearance.thread = "c1"
            content.appearance.link = Self.link
            content.appearance.image = Self.image
            content.appearance.interruptionLevel = .timeSensitive
        }
        let image = JSONValue.string(Self.image)
        #expect(message["token"] == "t" && message["fid"] == nil)
        #expect(message["notification"] == ["title": "マスオさん", "body": "ただいま 🍶", "image": image])
        #expect(message["data"] == ["chat": "c1", "link": .string(Self.link)])
        #expect(
            message["android"] == [
                "priority": "HIGH", "ttl": "3600s", "collapse_key": "room:c1",
                "notification": ["sound": "default", "tag": "room:c1", "notification_count": 3],
            ])
        #expect(
            message["apns"] == [
                "headers": [
                    "apns-push-type": "alert", "apns-priority": "10", "apns-collapse-id": "room:c1",
                    "apns-expiration": "1795003600",
                ],
                "payload": [
                    "aps": [
                        "badge": 3, "sound": "default", "thread-id": "c1", "interruption-level": "time-sensitive",
                        "mutable-content": 1,
                    ]
                ],
                "fcm_options": ["image": image],
            ])
        #expect(
            message["webpush"] == [
                "headers": ["TTL": "3600", "Urgency": "high", "Topic": .string(WebPushRequest.topic("room:c1"))],
                "notification": ["tag": "room:c1"], "fcm_options": ["link": .string(Self.link)],
            ])
    }

    @Test func whatIsNotThereIsNotSent() throws {
        let message = try message(.init(body: "text")) { $0.appearance.priority = .normal }
        #expect(message["notification"] == ["body": "text"] && message["data"] == nil)
        #expect(
            message["android"] == ["priority": "NORMAL", "ttl": "3600s", "notification": ["tag": "ntf_1"]])
        #expect(message["apns"]?["headers"]?["apns-priority"] == "5")
        #expect(message["apns"]?["payload"] == ["aps": [:]])
        #expect(message["webpush"]?["notification"] == ["tag": "ntf_1", "silent": true])
    }

    @Test func withActionsTheAppShowsTheNotification() throws {
        let message = try message(.init(title: "プロポーズ", body: "ぼくと結婚してください!")) { content in
            content.data = ["chat": "c1", "title": "own", "tag": "own"]
            content.appearance.priority = .normal
            content.appearance.badge = 1
            content.appearance.sound = "default"
            var accept = DeliveryContent.Action(id: "ACCEPT", title: "承認")
            accept.input = .init(button: "送信")
            var refuse = DeliveryContent.Action(id: "REFUSE", title: "拒否", opensApp: true)
            refuse.isDestructive = true
            refuse.requiresAuthentication = true
            content.appearance.category = .init(id: "MARRY_ME", actions: [accept, refuse])
        }
        #expect(message["notification"] == nil)
        #expect(message["android"] == ["priority": "HIGH", "ttl": "3600s"])
        let data = try #require(message["data"]?.object)
        let actions = try JSONParser.parse(try #require(data["actions"]?.string))
        #expect(
            actions == [
                [
                    "id": "ACCEPT", "title": "承認", "activation": "background", "destructive": false,
                    "authenticationRequired": false, "input": ["button": "送信"],
                ],
                [
                    "id": "REFUSE", "title": "拒否", "activation": "foreground", "destructive": true,
                    "authenticationRequired": true,
                ],
            ])
        var rest = data
        rest["actions"] = nil
        #expect(
            rest == [
                "chat": "c1", "title": "プロポーズ", "body": "ぼくと結婚してください!", "category": "MARRY_ME", "tag": "own",
                "sound": "default", "badge": "1",
            ])
        #expect(
            message["apns"]?["payload"] == [
                "aps": [
                    "alert": ["title": "プロポーズ", "body": "ぼくと結婚してください!"], "badge": 1, "sound": "default",
                    "category": "MARRY_ME",
                ]
            ])
        #expect(message["webpush"]?["notification"] == nil)
    }

    @Test func aCategoryWithoutActionsIsShownByAndroid() throws {
        let message = try message(.init(title: "t")) { $0.appearance.category = .init(id: "CHAT", actions: []) }
        #expect(message["notification"] == ["title": "t"])
        #expect(message["apns"]?["payload"] == ["aps": ["category": "CHAT"]])
    }

    @Test func anAlertWithoutATitleIsAText() throws {
        let message = try message(.init(body: "ぼくと結婚してください!")) { content in
            content.appearance.category = .init(id: "MARRY_ME", actions: [.init(id: "ACCEPT", title: "承認")])
        }
        #expect(
            message["apns"]?["payload"] == ["aps": ["alert": "ぼくと結婚してください!", "category": "MARRY_ME"]])
        #expect(message["data"]?["title"] == nil)
    }

    @Test func aSilentMessageShowsNothing() throws {
        let plain = try message(.init()) { $0.data = ["removed": "ntf_0"] }
        #expect(plain["notification"] == nil && plain["data"] == ["removed": "ntf_0"])
        #expect(plain["android"] == ["priority": "HIGH", "ttl": "3600s"])
        #expect(plain["apns"]?["payload"] == ["aps": ["content-available": 1]])
        #expect(plain["apns"]?["headers"]?["apns-push-type"] == "background")
        #expect(plain["apns"]?["headers"]?["apns-priority"] == "5")
        #expect(plain["webpush"]?["notification"] == nil)
        let badge = try message(.init()) { $0.appearance.badge = 0 }
        #expect(badge["apns"]?["payload"] == ["aps": ["content-available": 1, "badge": 0]])
        #expect(badge["apns"]?["headers"]?["apns-push-type"] == "alert")
        #expect(badge["data"] == nil)
    }

    /// One platform shows something, and the app on another one gets the data alone.
    @Test func anAlertOfThePlatformAloneIsShown() throws {
        var members = Notifier.PlatformMembers()
        members.fcm = ["apns": ["payload": ["aps": ["alert": ["title": "t"], "category": "REPLY"]]]]
        let given = members
        let message = try message(.init()) { content in
            content.platforms = given
            content.data = ["room": "r1"]
            content.appearance.priority = .normal
        }
        #expect(message["notification"] == nil && message["data"] == ["room": "r1"])
        #expect(message["android"] == ["priority": "NORMAL", "ttl": "3600s"])
        #expect(message["apns"]?["payload"] == ["aps": ["alert": ["title": "t"], "category": "REPLY"]])
        #expect(message["apns"]?["headers"]?["apns-push-type"] == "alert")
    }

    /// The app removes it by its tag.
    @Test func whatMembersShowOnAndroidHasATagAndABadge() throws {
        var members = Notifier.PlatformMembers()
        members.fcm = ["android": ["notification": ["title_loc_key": "NEW"]]]
        let given = members
        let message = try message(.init()) { content in
            content.platforms = given
            content.collapseKey = "room:c1"
            content.appearance.badge = 3
        }
        #expect(
            message["android"]?["notification"]
                == ["tag": "room:c1", "notification_count": 3, "title_loc_key": "NEW"])
    }

    @Test func theTargetIsTheOneThatWasRegistered() throws {
        let request = try #require(
            FCMRequest(delivery(.init(title: "t")), to: .installation("f"), now: Self.now, validatesOnly: true))
        let json = try JSONParser.parse(request.body)
        #expect(json["validate_only"] == true)
        #expect(json["message"]?["fid"] == "f" && json["message"]?["token"] == nil)
    }

    @Test(
        arguments: [
            (0, "0s", "0"), (-1, "0s", "0"), (1_500, "1s", "1795000001"), (.max - now, "2419200s", "1797419200"),
        ]
            as [(Int64, String, String)])
    func whatIsLeftIsTheTimeToLive(left: Int64, ttl: String, expiration: String) throws {
        var delivery = delivery(.init(title: "t"))
        delivery.expiresAt = Self.now + left
        let request = try #require(FCMRequest(delivery, to: .token("t"), now: Self.now))
        let message = try JSONParser.parse(request.body)["message"]
        #expect(message?["android"]?["ttl"]?.string == ttl)
        #expect(message?["apns"]?["headers"]?["apns-expiration"]?.string == expiration)
    }

    @Test(arguments: [(64, true), (65, false)])
    func aLongNameOnTheDeviceIsHashed(count: Int, isKept: Bool) throws {
        let key = String(repeating: "k", count: count)
        let message = try message(.init(title: "t")) { $0.collapseKey = key }
        let id = message["apns"]?["headers"]?["apns-collapse-id"]?.string
        #expect((id == key) == isKept && (id?.utf8.count ?? 0) <= 64)
        let japanese = try self.message(.init(title: "t")) { $0.collapseKey = "部屋" }
        #expect(japanese["apns"]?["headers"]?["apns-collapse-id"]?.string?.utf8.count == 32)
    }

    private func size(_ message: JSONValue) -> Int {
        var object = message.object ?? [:]
        object["token"] = nil
        return JSONValue.object(object).encoded.count
    }

    @Test(arguments: 0..<26, [true, false])
    func aBodyIsCutBetweenTwoCharactersThatPeopleSee(offset: Int, hasActions: Bool) throws {
        let family = "👨‍👩‍👧‍👦"
        let body = String(repeating: "x", count: offset) + String(repeating: family, count: 300)
        let message = try message(.init(title: "t", body: body)) { content in
            content.appearance.image = Self.image
            guard hasActions else { return }
            content.appearance.category = .init(id: "C", actions: [.init(id: "a", title: "a")])
        }
        // With actions the body is there twice.
        let copies = hasActions ? 2 : 1
        #expect(size(message) <= 4_096 && size(message) > 4_096 - copies * family.utf8.count)
        let cut = try #require((hasActions ? message["data"] : message["notification"])?["body"]?.string)
        #expect(cut.hasSuffix("…") && body.hasPrefix(cut.dropLast()))
        #expect((cut.dropLast().count - offset) * family.utf8.count + offset == cut.utf8.count - 3)
        #expect(message["notification"]?["image"] == nil && message["data"]?["image"] == nil)
    }

    @Test func aTitleThatIsTooLongIsCut() throws {
        // Six bytes each as JSON.
        let title = String(repeating: "\u{1}", count: 700)
        let message = try message(.init(title: title, body: String(repeating: "あ", count: 100)))
        let shown = try #require(message["notification"]?["title"]?.string)
        #expect(message["notification"]?["body"] == "…" && size(message) <= 4_096)
        #expect(shown.hasSuffix("…") && shown.count > 300)
    }

    @Test func aLinkThatIsTooLongGoes() throws {
        let link = "https://chat.example.com/" + String(repeating: "l", count: 2_000)
        let message = try message(.init(title: "マスオさん", body: "ただいま")) { $0.appearance.link = link }
        #expect(message["data"]?["link"] == nil && message["notification"]?["title"] == "マスオさん")
    }

    @Test func aMessageOfTheLimitStaysWhole() throws {
        let base = size(try message(.init(title: "t", body: "")))
        let body = String(repeating: "b", count: 4_096 - base)
        #expect(try message(.init(title: "t", body: body))["notification"]?["body"]?.string == body)
        let longer = try message(.init(title: "t", body: body + "b"))
        #expect(longer["notification"]?["body"]?.string?.hasSuffix("b…") == true)
        let data = ["x": String(repeating: "x", count: 4_096)]
        #expect(FCMRequest(delivery(.init(title: "t")) { $0.data = data }, to: .token("t"), now: 0) == nil)
    }

    @Test func theMembersOfThePlatformAreMergedDeeply() throws {
        let members: JSONValue = [
            "android": ["notification": ["channel_id": "messages", "tag": "own"], "ttl": "5s"],
            "apns": ["payload": ["aps": ["target-content-id": "c1"], "room": "r1"]],
            "data": ["extra": "1"], "fcm_options": ["analytics_label": "chat"],
        ]
        try FCMRequest.check(platformMembers: members)
        let message = try message(.init(title: "t")) { content in
            content.data = ["chat": "c1"]
            content.appearance.sound = "default"
            var platforms = Notifier.PlatformMembers()
            platforms.fcm = members
            content.platforms = platforms
        }
        #expect(
            message["android"] == [
                "priority": "HIGH", "ttl": "5s",
                "notification": ["channel_id": "messages", "tag": "own", "sound": "default"],
            ])
        #expect(message["data"] == ["chat": "c1", "extra": "1"])
        #expect(
            message["apns"]?["payload"] == ["aps": ["sound": "default", "target-content-id": "c1"], "room": "r1"])
        #expect(message["fcm_options"] == ["analytics_label": "chat"])
    }

    @Test(arguments: [
        (#"{"token":"x"}"#, "platforms.fcm.token is not known"), (#"{"fid":"x"}"#, "platforms.fcm.fid is not known"),
        (#"{"topic":"x"}"#, "platforms.fcm.topic is not known"),
        (#"{"condition":"x"}"#, "platforms.fcm.condition is not known"),
        (#"{"android":{"notification":{"badge":1}}}"#, "platforms.fcm.android.notification.badge is not known"),
        (#"{"android":{"priority":"high"}}"#, "platforms.fcm.android.priority should be one of NORMAL, HIGH"),
        (#"{"android":{"ttl":3600}}"#, "platforms.fcm.android.ttl should be seconds"),
        (#"{"android":{"ttl":"2419201s"}}"#, "platforms.fcm.android.ttl should be seconds"),
        (#"{"android":{"notification":{"color":"red"}}}"#, "notification.color should be a colour"),
        (#"{"android":{"notification":{"title_loc_args":["a",1]}}}"#, "title_loc_args[1] should be a string"),
        (#"{"data":{"a":1}}"#, "platforms.fcm.data.a should be a string"),
        (#"{"apns":{"payload":[]}}"#, "platforms.fcm.apns.payload should be an object"),
        (#"{"webpush":{"fcm_options":{"link":"http://x"}}}"#, "link should be an absolute https URL"),
        (#"{"data":{"gcm.x":"1"}}"#, "data.gcm.x cannot be sent over FCM"),
        (#"{"android":{"data":{"from":"1"}}}"#, "data.from cannot be sent over FCM"),
        (#"5"#, "platforms.fcm should be an object"),
    ])
    func membersThatAreNotKnownAreRefusedByName(json: String, message: String) throws {
        let error = #expect(throws: ArgumentError.self) {
            try FCMRequest.check(platformMembers: try JSONParser.parse(json))
        }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: ["from", "message_type", "google", "google.c.a", "gcm", "gcm.notification.x"])
    func namesThatFCMKeepsAreRefused(name: String) {
        let error = #expect(throws: ArgumentError.self) { try FCMRequest.check(data: ["a": "1", name: "2"]) }
        #expect(error?.reason == "invalid_data" && error?.message.contains("data.\(name)") == true)
        #expect(throws: Never.self) { try FCMRequest.check(data: ["From": "1", "fromUser": "2", "agoogle": "3"]) }
    }
}

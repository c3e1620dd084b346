import HatoModel
import Testing

@testable import HatoPush

@Suite struct WebPushRequestTests {
    private static let now: Int64 = 1_795_000_000_000

    private func delivery(_ text: Notifier.NotificationText, _ change: (inout Delivery) -> Void = { _ in }) throws
        -> Delivery
    {
        let content = DeliveryContent(notification: "ntf_1", device: "dev_1", uid: "u2", text: text)
        var delivery = Delivery(
            id: "ntf_1-0", address: .webpush(try WebPushReceiver().subscription("https://push.example.com/")),
            content: content, createdAt: Self.now)
        delivery.expiresAt = Self.now + 3_600_500
        change(&delivery)
        return delivery
    }

    private func request(_ text: Notifier.NotificationText, _ change: (inout Delivery) -> Void = { _ in }) throws
        -> WebPushRequest
    {
        try #require(WebPushRequest(try delivery(text, change), now: Self.now))
    }

    private func json(_ request: WebPushRequest) throws -> JSONValue { try JSONParser.parse(request.plaintext) }

    @Test func aBodyIsBothClassicAndDeclarative() throws {
        let request = try request(.init(title: "マスオさん", body: "ただいま 🍶")) { delivery in
            delivery.content.data = ["chat": "c1", "b": "2"]
            delivery.content.collapseKey = "room:c1"
            delivery.content.appearance.badge = 3
            delivery.content.appearance.sound = "default"
            delivery.content.appearance.link = "https://chat.example.com/c1"
            delivery.content.appearance.image = "https://chat.example.com/i.png"
        }
        #expect(
            try json(request) == [
                "web_push": 8030,
                "notification": [
                    "title": "マスオさん", "body": "ただいま 🍶", "navigate": "https://chat.example.com/c1",
                    "image": "https://chat.example.com/i.png", "tag": "room:c1", "app_badge": "3",
                    "data": ["b": "2", "chat": "c1"],
                ],
                "app_badge": 3, "mutable": false,
            ])
        #expect(request.headers["ttl"] == "3600" && request.headers["urgency"] == "high")
    }

    @Test func whatIsNotThereIsNotSent() throws {
        let request = try request(.init(body: "text")) { $0.content.appearance.priority = .normal }
        #expect(
            try json(request) == [
                "web_push": 8030,
                "notification": ["title": "text", "silent": true, "tag": "ntf_1", "data": [:]], "mutable": false,
            ])
        #expect(request.headers["urgency"] == "normal")
    }

    @Test func aSilentPushShowsNothing() throws {
        let request = try request(.init()) { delivery in
            delivery.content.data = ["removed": "ntf_0"]
            delivery.content.appearance.badge = 0
            delivery.content.appearance.link = "https://chat.example.com/c1"
        }
        #expect(
            try json(request) == [
                "notification": ["tag": "ntf_1", "app_badge": "0", "data": ["removed": "ntf_0"]], "app_badge": 0,
            ])
    }

    @Test func twoActionsAreShownAndTheWorkerShowsThem() throws {
        let request = try request(.init(title: "t")) { delivery in
            var reply = DeliveryContent.Action(id: "REPLY", title: "返信")
            reply.input = .init(placeholder: "メッセージ")
            delivery.content.appearance.link = "https://chat.example.com/c1"
            delivery.content.appearance.category = .init(
                id: "CHAT",
                actions: [reply, .init(id: "OPEN", title: "開く", opensApp: true), .init(id: "x", title: "x")])
        }
        let body = try json(request)
        #expect(
            body["notification"]?["actions"] == [
                ["action": "REPLY", "title": "返信", "type": "text", "placeholder": "メッセージ"],
                ["action": "OPEN", "title": "開く", "navigate": "https://chat.example.com/c1"],
            ])
        #expect(body["mutable"] == true)
    }

    /// The text may stand with the platform alone.
    @Test func aTitleOfThePlatformIsShownAsOneOfItsOwn() throws {
        let rows: [(JSONValue, JSONValue)] = [
            (["title": "Hi", "body": "b"], ["title": "Hi", "body": "b"]), (["body": "b"], ["title": "b"]),
        ]
        for (given, shown) in rows {
            let request = try request(.init()) { delivery in
                delivery.content.platforms = .init()
                delivery.content.platforms?.webpush = ["notification": given]
                delivery.content.appearance.sound = "default"
                delivery.content.appearance.link = "https://chat.example.com/c1"
                delivery.content.appearance.category = .init(id: "C", actions: [.init(id: "A", title: "a")])
            }
            let body = try json(request)
            #expect(body["web_push"] == 8030 && body["mutable"] == true)
            var notification = shown.object ?? [:]
            notification["navigate"] = "https://chat.example.com/c1"
            notification["actions"] = [["action": "A", "title": "a"]]
            notification["tag"] = "ntf_1"
            notification["data"] = [:]
            #expect(body["notification"] == .object(notification))
        }
    }

    @Test func membersThatShowNothingMakeNoTitle() throws {
        let request = try request(.init()) { delivery in
            delivery.content.platforms = .init()
            delivery.content.platforms?.webpush = ["notification": ["requireInteraction": true]]
            delivery.content.appearance.link = "https://chat.example.com/c1"
        }
        let body = try json(request)
        #expect(body["web_push"] == nil && body["notification"]?["navigate"] == nil)
    }

    @Test func topicsAreOfTheTagAndHideIt() throws {
        let topics = try [("k", "t"), ("k", nil), (nil, "t"), (nil, nil)].map { key, thread in
            try request(.init(title: "t")) { delivery in
                delivery.content.collapseKey = key
                delivery.content.appearance.thread = thread
            }.headers["topic"] ?? ""
        }
        #expect(topics[0] == topics[1] && Set(topics).count == 3)
        for topic in topics { #expect(topic.utf8.count == 32 && Base64.url.decode(topic.utf8)?.count == 24) }
    }

    @Test(
        arguments: [(0, 0), (-5_000, 0), (999, 0), (60_000, 60), (.max - now, 2_419_200), (.min + now, 0)]
            as [(Int64, Int)])
    func theTimeToLiveIsWhatIsLeft(left: Int64, seconds: Int) throws {
        let request = try request(.init(title: "t")) { $0.expiresAt = Self.now + left }
        #expect(request.headers["ttl"] == String(seconds))
    }

    @Test func whatIsTooLargeLosesItsImageFirst() throws {
        let base = try request(.init(title: "t", body: "")) { $0.content.appearance.image = nil }.plaintext.count
        let image = "https://example.com/\(String(repeating: "i", count: 100))"
        let fitting = String(repeating: "b", count: WebPushEncryption.plaintextBytesMax - base)
        let request = try request(.init(title: "t", body: fitting)) { $0.content.appearance.image = image }
        let notification = try json(request)["notification"]
        #expect(notification?["image"] == nil && notification?["body"]?.string == fitting)
        #expect(request.plaintext.count == WebPushEncryption.plaintextBytesMax)
    }

    /// Family ZWJ sequences have 25 bytes, in each of which the limit may be.
    @Test(arguments: 0..<26)
    func aBodyIsCutBetweenTwoCharactersThatPeopleSee(offset: Int) throws {
        let family = "👨‍👩‍👧‍👦"
        let body = String(repeating: "x", count: offset) + String(repeating: family, count: 300)
        let request = try request(.init(title: "t", body: body))
        #expect(request.plaintext.count <= WebPushEncryption.plaintextBytesMax)
        #expect(request.plaintext.count > WebPushEncryption.plaintextBytesMax - family.utf8.count)
        let cut = try #require(try json(request)["notification"]?["body"]?.string)
        #expect(cut.hasSuffix("…") && body.hasPrefix(cut.dropLast()))
        #expect((cut.dropLast().count - offset) * family.utf8.count + offset == cut.utf8.count - 3)
    }

    @Test func theOnlyTextIsCutWhereThereIsNoBody() throws {
        let title = String(repeating: "\"", count: 4_096)
        let request = try request(.init(body: title))
        #expect(request.plaintext.count <= WebPushEncryption.plaintextBytesMax)
        #expect(try json(request)["notification"]?["title"]?.string?.hasSuffix("\"…") == true)
    }

    @Test func whatFitsNotEvenWithoutItsTextIsRefused() throws {
        let data = ["a": String(repeating: "x", count: 4_000)]
        for text in [Notifier.NotificationText(title: "t", body: "b"), .init(title: "t"), .init()] {
            #expect(WebPushRequest(try delivery(text) { $0.content.data = data }, now: Self.now) == nil)
        }
    }

    @Test func theMembersOfThePlatformTakeThePlaceOfWhatIsMade() throws {
        let members: JSONValue = [
            "headers": ["TTL": "5", "Urgency": "very-low", "topic": "c1"],
            "notification": [
                "title": "other", "requireInteraction": true, "data": ["own": [1]], "vibrate": [100, 50],
            ],
        ]
        try WebPushRequest.check(platformMembers: members)
        let request = try request(.init(title: "t", body: "b")) { delivery in
            delivery.content.data = ["chat": "c1"]
            var platforms = Notifier.PlatformMembers()
            platforms.webpush = members
            delivery.content.platforms = platforms
        }
        #expect(request.headers == ["ttl": "5", "urgency": "very-low", "topic": "c1"])
        #expect(
            try json(request)["notification"] == [
                "title": "other", "body": "b", "tag": "ntf_1", "data": ["chat": "c1", "own": [1]],
                "requireInteraction": true, "vibrate": [100, 50],
            ])
    }

    @Test(arguments: [
        (#"[]"#, "platforms.webpush should be an object"),
        (#"{"header":{}}"#, "platforms.webpush.header is not known"),
        (#"{"headers":{"TTL":60}}"#, "platforms.webpush.headers.TTL should be a number of seconds"),
        (#"{"headers":{"TTL":"2419201"}}"#, "platforms.webpush.headers.TTL should be"),
        (#"{"headers":{"Urgency":"highest"}}"#, "platforms.webpush.headers.Urgency should be one of very-low"),
        (#"{"headers":{"Topic":"a b"}}"#, "platforms.webpush.headers.Topic should be"),
        (#"{"headers":{"Authorization":"x"}}"#, "platforms.webpush.headers.Authorization is not known"),
        (#"{"notification":{"titel":"x"}}"#, "platforms.webpush.notification.titel is not known"),
        (#"{"notification":{"silent":"x"}}"#, "platforms.webpush.notification.silent should be true or false"),
        (#"{"notification":{"navigate":"http://x"}}"#, "notification.navigate should be an absolute https URL"),
        (#"{"notification":{"app_badge":-1}}"#, "notification.app_badge should be a string or an integer"),
        (
            #"{"notification":{"actions":[{"action":"a"},{"title":1}]}}"#,
            "notification.actions[1].title should be a string"
        ),
        (#"{"notification":{"vibrate":[100,"x"]}}"#, "notification.vibrate[1] should be an integer"),
        (#"{"notification":{"data":"x"}}"#, "notification.data should be an object"),
    ])
    func membersThatAreNotKnownAreRefusedByName(json: String, message: String) throws {
        let error = #expect(throws: ArgumentError.self) {
            try WebPushRequest.check(platformMembers: try JSONParser.parse(json))
        }
        #expect(error?.reason == "invalid_platform_member")
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test func membersThatFitIntoNoPushAreRefused() throws {
        let long: JSONValue = ["notification": ["body": .string(String(repeating: "x", count: 4_000))]]
        #expect(throws: ArgumentError.self) { try WebPushRequest.check(platformMembers: long) }
    }
}

@Suite struct WebPushResponseTests {
    private static let now: Int64 = 1_795_000_000

    private func outcome(_ status: Int, retryAfter: String? = nil, location: String? = nil) -> DeliveryOutcome {
        WebPushResponse(status: status, retryAfter: retryAfter, location: location, excerpt: "why")
            .outcome(now: Self.now)
    }

    @Test(arguments: [200, 201, 202])
    func aSuccessIsDeliveredUnderTheNameOfThePushService(status: Int) {
        let location = "https://push.example.com/m/\(String(repeating: "x", count: 1_000))"
        #expect(outcome(status) == .delivered(DeliveryResponse(status: status)))
        #expect(
            outcome(status, location: location)
                == .delivered(DeliveryResponse(status: status, providerID: String(location.prefix(256)))))
    }

    @Test(arguments: [
        (404, "gone"), (410, "gone"), (400, "failed"), (413, "rejected"), (401, "failed"), (403, "failed"),
        (307, "failed"), (408, "failed"), (429, "failed"), (500, "failed"), (502, "failed"), (503, "failed"),
    ])
    func eachStatusHasItsOutcome(status: Int, expected: String) {
        let (name, response): (String, DeliveryResponse?) =
            switch outcome(status) {
            case .deviceGone(let response, nil): ("gone", response)
            case .rejected(let response): ("rejected", response)
            case .failed(let response, nil): ("failed", response)
            default: ("other", nil)
            }
        #expect(name == expected && response?.status == status && response?.error?.hasSuffix(": why") == true)
    }

    @Test(
        arguments: [
            ("7", 7), ("0", 0), ("-5", 0), ("99999999999999", 3_600), ("soon", nil),
            ("Wed, 18 Nov 2026 11:06:45 GMT", 5), ("Wed, 18 Nov 2999 11:06:45 GMT", 3_600),
        ] as [(String, Int?)])
    func aBusyPushServiceSaysWhen(text: String, seconds: Int?) throws {
        for status in [429, 503] {
            guard case .failed(_, let delay) = outcome(status, retryAfter: text) else {
                Issue.record("\(status) is no failure")
                return
            }
            #expect(delay == seconds.map { .seconds($0) })
        }
    }
}

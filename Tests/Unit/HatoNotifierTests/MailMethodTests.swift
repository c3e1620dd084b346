import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// `notifier.devices.register` with `email`, and the apps file's `mail`.
@Suite(.timeLimit(.minutes(10))) struct MailMethodTests {
    private let channel = ScriptedChannel(.email)
    private let phones = ScriptedChannel(.fcm)
    private let webhooks = ScriptedChannel()

    private func start(store: (any Store)? = nil, _ clock: TestClock? = nil) async throws -> TestNotifier {
        var settings = MailCredentials.Settings(url: "smtp://127.0.0.1:25", from: "chat@example.com")
        settings.tls = "none"
        var apps = try TestApps.fcm()
        apps.apps["default"]?.mail = try MailCredentials(settings)
        return try await TestNotifier.start(store: store, channels: [channel, phones, webhooks]) { configuration in
            configuration.apps = apps
            if let clock { configuration.time = clock.source }
        }
    }

    private func register(
        _ notifier: TestNotifier, _ token: JSONObject?, app: String? = nil
    ) async throws -> String {
        var request = Notifier.Devices.Register(platform: .email)
        request.app = app
        var params = request.members
        params["auth"] = .string(TestKeys.administrator)
        if let token { params["as"] = ["uid": "u1", "token": .object(token)] } else { params["uid"] = "u1" }
        let result = try await notifier.client.call(method: Notifier.Devices.Register.method, params: params)
        return try Notifier.Devices.Register.decodeResult(result).device
    }

    private func verified(_ address: String) -> JSONObject { ["email": .string(address), "email_verified": true] }

    private func address(_ device: String, _ store: any Store) async throws -> String? {
        try await store.read { try $0.record(DeviceRecord.self, DeviceRecord.key(device))?.email }
    }

    @Test func onlyTheVerifiedAddressOfTheTokenIsRegistered() async throws {
        let notifier = try await start()
        let tokens: [JSONObject?] = [
            nil, [:], ["email": "masuo@example.com"], ["email": "masuo@example.com", "email_verified": false],
            ["email": "masuo@example.com", "email_verified": "true"], ["email_verified": true],
            verified("masuo"), verified("masuo@example.com\r\nBcc: all@example.com"),
        ]
        for token in tokens {
            let error = await #expect(throws: RPCError.self) { _ = try await register(notifier, token) }
            #expect(error?.reason == "email_not_verified" && error?.code == .failedPrecondition, "\(error as Any)")
        }
        #expect(try await notifier.client.call(Notifier.Devices.List()).devices.isEmpty)
        let error = await #expect(throws: RPCError.self) {
            _ = try await register(notifier, verified("masuo@example.com"), app: "other")
        }
        #expect(error?.reason == "app_not_configured")
        await notifier.stop()
    }

    @Test func aUserHasOneMailboxForEachApp() async throws {
        let store = try MemoryStore()
        let notifier = try await start(store: store)
        let device = try await register(notifier, verified("Masuo@例え.jp"))
        #expect(try await address(device, store) == "Masuo@xn--r8jz45g.jp")
        // An address that is no longer the user's gets nothing any more.
        #expect(try await register(notifier, verified("fuguta@example.com")) == device)
        #expect(try await address(device, store) == "fuguta@example.com")
        let shown = try #require(try await notifier.client.call(Notifier.Devices.List(uid: "u1")).devices.first)
        #expect(shown.platform == .email && shown.url == nil)
        _ = try await notifier.client.call(Notifier.Devices.Unregister(device: device))
        #expect(try await store.read { try $0.rows(RecordKey(.deviceAtAddress)).isEmpty })
        await notifier.stop()
    }

    @Test func membersOfOtherPlatformsAreRefused() async throws {
        let notifier = try await start()
        var request = Notifier.Devices.Register(platform: .email)
        request.url = "https://example.com"
        let error = await #expect(throws: RPCError.self) { _ = try await notifier.call(request, as: "u1") }
        #expect(error?.message.contains("A device of email has no url") == true)
        await notifier.stop()
    }

    @Test func aMailGoesAfterTheWaitUnlessAPhoneRegisters() async throws {
        let clock = TestClock()
        let notifier = try await start(clock)
        _ = try await register(notifier, verified("masuo@example.com"))
        let send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a"))
        let first = try #require(try await notifier.client.call(send).notification)
        var phone = Notifier.Devices.Register(platform: .fcm)
        phone.token = "t1"
        let device = try await notifier.call(phone, as: "u1").device
        let dropped = try await notifier.client.call(Notifier.Status(notification: first)).deliveries.first
        #expect(dropped?.state == .dropped && dropped?.reason == "seen")
        _ = try await notifier.call(Notifier.Devices.Unregister(device: device), as: "u1")
        let second = try #require(try await notifier.client.call(send).notification)
        // A webhook is registered by servers.
        try await notifier.addDevice(of: "u1", at: "https://example.com/hook")
        try await eventually("it is mailed") {
            clock.advance(by: .seconds(10))
            return channel.deliveries.count == 1
        }
        #expect(channel.deliveries.first?.id.hasPrefix(second) == true && channel.deliveries.first?.app == "default")
        try await eventually("delivered") {
            try await notifier.client.call(Notifier.Status(notification: second)).deliveries
                .contains { $0.state == .delivered }
        }
        await notifier.stop()
    }

    // MARK: Apps file

    private func apps(_ mail: JSONValue) throws -> PushApps {
        try AppsFile(["default": ["mail": mail]]) { name in
            guard let text = ["password": "fly me home\n", "bad": "no certificate"][name] else {
                throw ArgumentError(reason: "invalid_apps_file", "\(name) is missing")
            }
            return Array(text.utf8)
        }.apps()
    }

    @Test func theAppsFileNamesTheServer() throws {
        let mail: JSONObject = [
            "url": "smtp://hato@mail.example.com:587", "from": "Chat <chat@example.com>", "password-file": "password",
            "locale": "ja",
        ]
        #expect(try apps(.object(mail)).apps["default"]?.platforms == [.email])
        let cases: [(String, JSONValue?, String)] = [
            ("url", nil, "default.mail has no url"), ("from", nil, "default.mail has no from"),
            ("url", "mail.example.com", "default.mail.url must begin with smtp:// or smtps://"),
            ("from", "chat", "default.mail.from must be an address"),
            ("password-file", nil, "default.mail.password-file is missing: url has a user name"),
            ("password-file", "none", "none is missing"),
            ("tls", "off", "default.mail.tls must be required or none"),
            ("tls", "none", "default.mail.tls cannot be none for a url with a user name"),
            ("authority-file", "bad", "default.mail.authority-file must be readable, with certificates in PEM"),
            ("locale", "fr", "default.mail.locale must be en or ja"),
            ("host", "x", "default.mail has no member \"host\"; known are authority-file, from, locale"),
        ]
        for (name, value, words) in cases {
            var wrong = mail
            wrong[name] = value
            let error = #expect(throws: ArgumentError.self) { _ = try apps(.object(wrong)) }
            #expect(error?.message.hasPrefix(words) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("fly me") != true)
        }
    }
}

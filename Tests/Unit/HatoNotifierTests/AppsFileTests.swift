import Foundation
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Synchronization
import Testing

@testable import HatoNotifier

/// The document of the setting `apps-file`, and the methods about apps.
@Suite struct AppsFileTests {
    private struct Missing: Error {}

    private func apps(_ document: JSONValue, files: [String: String] = [:]) throws -> PushApps {
        try AppsFile(document) { name in
            guard let text = files[name] else { throw Missing() }
            return Array(text.utf8)
        }.apps()
    }

    private func problem(_ document: JSONValue, files: [String: String] = [:]) -> String? {
        do { _ = try apps(document, files: files) } catch let error as ArgumentError { return error.message } catch {
            return "\(error)"
        }
        return nil
    }

    private let key = WebPushCredentials.newKey()

    @Test func credentialsAreReadFromTheFilesThatAreNamed() throws {
        let webpush: JSONValue = ["key-file": "k", "subject": "mailto:admin@example.com", "allow-private": "true"]
        let apps = try apps(["default": ["webpush": webpush], "empty": [:]], files: ["k": key + "\n"])
        #expect(apps.apps["default"]?.platforms == [.webpush] && apps.apps["empty"]?.platforms == [])
        #expect(apps.apps["default"]?.webpush?.allowsPrivate == true)
    }

    /// A .p8 file with this key: PKCS#8 around RFC 5915, without the public key.
    private var apnsKey: String {
        let frame: [UInt8] = [
            0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
            0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04, 0x20,
        ]
        let text = Data(frame + (Base64.url.decode(key.utf8) ?? []))
            .base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN PRIVATE KEY-----\n\(text)\n-----END PRIVATE KEY-----\n"
    }

    @Test func theKeyOfAppleIsReadWithItsMembers() throws {
        var apns: JSONObject = [
            "key-file": "k", "key-id": "ABC123DEFG", "team-id": "DEF123GHIJ", "topic": "com.example.chat",
            "environment": "sandbox", "url": "https://localhost:8443",
        ]
        func read(_ name: String? = nil, _ value: JSONValue? = nil) throws -> PushApps {
            var apns = apns
            if let name { apns[name] = value }
            return try apps(["default": ["apns": .object(apns)]], files: ["k": apnsKey, "bad": "no key"])
        }
        let app = try #require(try read().apps["default"])
        #expect(app.platforms == [.apns] && app.apns?.environment == .sandbox)
        #expect(app.apns?.app == .init(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "com.example.chat"))
        apns["environment"] = nil
        #expect(try read().apps["default"]?.apns?.environment == .production)
        for (name, value, words) in [
            ("key-file", "bad", "default.apns.key-file is wrong: "), ("key-id", "x", "default.apns.key-id is wrong: "),
            ("team-id", "x", "default.apns.team-id is wrong: "), ("topic", "a b", "default.apns.topic is wrong: "),
            ("url", "http://localhost", "default.apns.url is wrong: "),
            ("ca-file", "bad", "default.apns.ca-file is wrong"),
            ("environment", "test", "default.apns.environment should be production or sandbox"),
            ("topic", nil, "default.apns has no topic"), ("bundle", "x", "default.apns has no member \"bundle\""),
        ] as [(String, JSONValue?, String)] {
            let error = #expect(throws: ArgumentError.self) { _ = try read(name, value) }
            #expect(error?.message.hasPrefix(words) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("no key") != true)
        }
    }

    @Test func whatIsWrongIsNamedWithItsPath() throws {
        let files = ["k": key, "bad": "no key", "account": "{\"type\":\"service_account\"}"]
        let cases: [(JSONValue, String)] = [
            ("text", "a member for each app"),
            (["default": "x"], "default should have members"),
            (["default": ["apn": [:]]], "default has no member \"apn\""),
            (["default": ["webpush": ["key-file": "k"]]], "default.webpush has no subject"),
            (["default": ["webpush": ["key-file": "bad", "subject": "mailto:a@b.c"]]], "default.webpush.key-file: "),
            (["default": ["webpush": ["key-file": "k", "subject": "x"]]], "default.webpush.subject: "),
            (
                ["default": ["webpush": ["key-file": "k", "subject": "mailto:a@b.c", "allow-private": "yes"]]],
                "default.webpush.allow-private should be true or false"
            ),
            (["default": ["fcm": ["service-account-file": "account"]]], "default.fcm.service-account-file: "),
            (["default": ["fcm": ["service-account-file": "none"]]], "Missing"),
            (["a\u{1}": [:]], "the id of an app"),
        ]
        for (document, words) in cases {
            let problem = problem(document, files: files)
            #expect(problem?.contains(words) == true, "\(document): \(problem ?? "accepted")")
            #expect(problem?.contains(key) != true && problem?.contains("no key") != true)
        }
    }

    @Test func browsersAreReachedWithoutAnyConfigurationByTheSameKeyAfterARestart() async throws {
        let store = try MemoryStore()
        var keys: Set<String> = []
        for _ in 0..<2 {
            let configuration = try await OwnWebPush.adding(to: PushApps(), store)
            keys.insert(try #require(configuration.apps["default"]?.webpush?.publicKey))
        }
        #expect(keys.count == 1)
        let notifier = try await TestNotifier.start(store: store)
        let anonymous = notifier.anonymousClient()
        #expect(try await anonymous.call(Notifier.Webpush.Key()).key == keys.first)
        await anonymous.close()
        let listing = try await notifier.client.call(Notifier.Apps.List())
        #expect(listing.apps.map(\.app) == ["default"])
        #expect(listing.apps.first?.providers == [Notifier.AppProvider(platform: .webpush, status: .unchecked)])
        await notifier.stop()
    }

    @Test func appsAreReadAgainOrStayAsTheyAre() async throws {
        let state = AppsState()
        let notifier = try await TestNotifier.start { $0.readApps = { try state.read() } }
        #expect(
            await reason { _ = try await notifier.client.call(Notifier.Webpush.Key(app: "shop")) }
                == "app_not_configured")
        var app = PushApp()
        app.webpush = try WebPushCredentials(key: key, subject: "mailto:a@example.com")
        state.set(PushApps(["shop": app]))
        let reloaded = try await notifier.client.call(Notifier.Apps.Reload())
        #expect(reloaded.apps.map(\.app) == ["default", "shop"])
        #expect(try await notifier.client.call(Notifier.Webpush.Key(app: "shop")).key == app.webpush?.publicKey)
        state.set(nil)
        #expect(await reason { _ = try await notifier.client.call(Notifier.Apps.Reload()) } == "invalid_apps_file")
        #expect(try await notifier.client.call(Notifier.Apps.List()).apps.count == 2)
        #expect(await reason { _ = try await notifier.client.call(Notifier.Apps.Check(app: "x")) } == "app_not_found")
        #expect(await reason { _ = try await notifier.client.call(Notifier.Apps.Resume(app: "x")) } == "app_not_found")
        _ = try await notifier.client.call(Notifier.Apps.Resume(app: "shop", platform: .fcm))
        await notifier.stop()
    }

    private func reason(_ body: () async throws -> Void) async -> String? {
        do { try await body() } catch let error as RPCError { return error.reason } catch { return "\(error)" }
        return nil
    }
}

/// A file of apps that changes.
private final class AppsState: Sendable {
    private let apps = Mutex<PushApps?>(PushApps())

    func set(_ apps: PushApps?) { self.apps.withLock { $0 = apps } }

    func read() throws -> PushApps {
        guard let apps = apps.withLock({ $0 }) else { throw ArgumentError(reason: "invalid_apps_file", "it is wrong") }
        return apps
    }
}

import Crypto
import HatoModel
import HatoTesting
import Testing

@testable import HatoPush

@Suite struct APNsCredentialsTests {
    private static let app = APNsCredentials.App(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "com.example.chat")
    private static let pem = P256.Signing.PrivateKey().pemRepresentation

    private func error(
        key: String = pem, _ app: APNsCredentials.App = app, _ server: APNsCredentials.Server? = nil
    ) -> ArgumentError? {
        do {
            _ = try APNsCredentials(key: key, app: app, server: server)
            return nil
        } catch {
            return error
        }
    }

    @Test func theFileOfAppleIsRead() throws {
        let credentials = try APNsCredentials(key: Self.pem, app: Self.app)
        #expect(credentials.key.pemRepresentation == Self.pem && credentials.environment == .production)
        #expect(credentials.url(of: .production) == "https://api.push.apple.com")
        #expect(credentials.url(of: .sandbox) == "https://api.sandbox.push.apple.com")
        // What stands in front of the text and after it is not of the key.
        #expect(error(key: "\n" + Self.pem + "\n") == nil)
    }

    @Test func aKeyThatIsNoneIsRefusedWithWhatItIs() {
        let secret = "MIGHAgEAMBMGByqGSM49"
        for (key, what) in [
            ("", "it is no PEM text"), (secret, "it is no PEM text"),
            (P256.Signing.PrivateKey().publicKey.pemRepresentation, "it is a public key"),
            (P384.Signing.PrivateKey().pemRepresentation, "it is damaged, or of another kind than P-256"),
            ("-----BEGIN PRIVATE KEY-----\n\(secret)\n-----END PRIVATE KEY-----", "it is damaged"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\n\(secret)", "it is encrypted"),
            ("-----BEGIN CERTIFICATE-----\n\(secret)", "it is a certificate"),
            ("-----BEGIN RSA PRIVATE KEY-----\n\(secret)", "it is a key of RSA"),
            ("-----BEGIN \(secret)-----", "its PEM text is of another kind"),
        ] {
            let error = error(key: key)
            #expect(error?.reason == "invalid_key" && error?.message.contains(what) == true)
            #expect(error?.message.contains(secret) == false)
        }
    }

    @Test func wrongMembersAreRefusedByName() {
        for keyID in ["", "abc123defg", "ABC123DEF", "ABC123DEFGH", "ABC-23DEFG"] {
            var app = Self.app
            app.keyID = keyID
            #expect(error(app)?.reason == "invalid_key_id")
            app = Self.app
            app.teamID = keyID
            #expect(error(app)?.reason == "invalid_team_id")
        }
        for topic in ["", "com.example chat", "アプリ", String(repeating: "a", count: 256)] {
            var app = Self.app
            app.topic = topic
            #expect(error(app)?.reason == "invalid_topic")
        }
        for url in ["http://localhost:1", "localhost", "https://localhost/x", "https://a@localhost"] {
            #expect(error(Self.app, .init(url: url))?.reason == "invalid_url")
        }
        for authorities in ["", "x", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"] {
            #expect(error(Self.app, .init(url: "https://localhost", authorities: authorities))?.reason == "invalid_ca")
        }
    }

    @Test func anotherServerIsCalledForBothEnvironments() throws {
        let credentials = try APNsCredentials(
            key: Self.pem, app: Self.app, server: .init(url: "https://LOCALHOST:8443/"))
        #expect(credentials.url(of: .production) == "https://localhost:8443")
        #expect(credentials.url(of: .sandbox) == "https://localhost:8443")
    }

    @Test func theirDescriptionHidesTheKey() throws {
        let credentials = try APNsCredentials(key: Self.pem, app: Self.app)
        var dumped = ""
        dump(credentials, to: &dumped)
        let lines = Self.pem.split(separator: "\n").filter { !$0.hasPrefix("-") }
        for text in [dumped, "\(credentials)", String(reflecting: credentials)] {
            #expect(text.contains("ABC123DEFG"))
            for line in lines { #expect(!text.contains(line)) }
        }
    }

    @Test func equalFilesAreEqualCredentials() throws {
        let one = try APNsCredentials(key: Self.pem, app: Self.app)
        let same = try APNsCredentials(key: Self.pem, app: Self.app)
        let otherKey = try APNsCredentials(key: P256.Signing.PrivateKey().pemRepresentation, app: Self.app)
        let otherPlace = try APNsCredentials(key: Self.pem, app: Self.app, environment: .sandbox)
        #expect(one == same && one != otherKey && one != otherPlace)
    }
}

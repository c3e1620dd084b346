import Crypto
import CryptoExtras
import HatoModel
import Testing

@testable import HatoPush

/// A service account of a Firebase project, made for the tests.
enum TestServiceAccount {
    /// Nil when no key can be made: the tests say so.
    static let key = try? _RSA.Signing.PrivateKey(keySize: .bits2048)

    static func file(tokenURL: String = "https://oauth2.googleapis.com/token") throws -> JSONObject {
        [
            "type": "service_account", "project_id": "chat-1", "private_key_id": "k1",
            "private_key": .string(try #require(key).pkcs8PEMRepresentation),
            "client_email": "push@chat-1.iam.gserviceaccount.com", "token_uri": .string(tokenURL),
        ]
    }

    /// Calls this machine's port for tokens and pushes.
    static func account(port: Int) throws -> FCMServiceAccount {
        let url = "http://127.0.0.1:\(port)"
        let file = JSONValue.object(try file(tokenURL: url + "/token")).encoded
        return try FCMServiceAccount(file, url: url, allowsLoopback: true)
    }

    /// Header and claims of an assertion whose signature is right.
    static func read(_ assertion: String) throws -> (header: JSONValue, claims: JSONValue) {
        let parts = assertion.split(separator: ".").map(String.init)
        let bytes = parts.compactMap { Base64.url.decode($0.utf8) }
        try #require(bytes.count == 3)
        let digest = SHA256.hash(data: Array("\(parts[0]).\(parts[1])".utf8))
        let signature = _RSA.Signing.RSASignature(rawRepresentation: bytes[2])
        let isValid = try #require(key).publicKey
            .isValidSignature(signature, for: digest, padding: .insecurePKCS1v1_5)
        try #require(isValid)
        return (try JSONParser.parse(bytes[0]), try JSONParser.parse(bytes[1]))
    }
}

@Suite struct FCMServiceAccountTests {
    private static let now: Int64 = 1_795_000_000

    @Test func theFileOfGooglesConsoleIsRead() throws {
        let account = try FCMServiceAccount(JSONValue.object(try TestServiceAccount.file()).encoded)
        #expect(account.email == "push@chat-1.iam.gserviceaccount.com" && account.projectID == "chat-1")
        #expect(account.sendURL == "https://fcm.googleapis.com/v1/projects/chat-1/messages:send")
        let (header, claims) = try TestServiceAccount.read(try account.assertion(now: Self.now))
        #expect(header == ["alg": "RS256", "typ": "JWT", "kid": "k1"])
        #expect(
            claims == [
                "iss": "push@chat-1.iam.gserviceaccount.com", "aud": "https://oauth2.googleapis.com/token",
                "scope": "https://www.googleapis.com/auth/firebase.messaging", "iat": .number(Double(Self.now)),
                "exp": .number(Double(Self.now + 3_600)),
            ])
    }

    /// Google's other token endpoints want the same audience; those of others want themselves.
    @Test(arguments: [
        ("https://www.googleapis.com/oauth2/v4/token", "https://oauth2.googleapis.com/token"),
        ("https://accounts.google.com/o/oauth2/token", "https://oauth2.googleapis.com/token"),
        ("https://tokens.example.com/token", "https://tokens.example.com/token"),
    ])
    func theAudienceIsTheOneThatTheEndpointWants(tokenURL: String, audience: String) throws {
        let file = JSONValue.object(try TestServiceAccount.file(tokenURL: tokenURL)).encoded
        let assertion = try FCMServiceAccount(file).assertion(now: Self.now)
        #expect(try TestServiceAccount.read(assertion).claims["aud"]?.string == audience)
    }

    @Test(
        arguments: [
            ("client_email", "x"), ("client_email", 5), ("client_email", nil), ("project_id", ""),
            ("project_id", "a/b"),
            ("project_id", nil), ("private_key_id", nil), ("private_key_id", "a\r\nb"), ("private_key", nil),
            ("private_key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LXRleHQ=\n-----END PRIVATE KEY-----"),
            ("token_uri", nil), ("token_uri", "http://127.0.0.1/"), ("token_uri", "token"), ("type", "authorized_user"),
        ] as [(String, JSONValue?)])
    func eachWrongMemberIsNamedAndNotShown(name: String, value: JSONValue?) throws {
        var file = try TestServiceAccount.file()
        file[name] = value
        let error = #expect(throws: ArgumentError.self) { try FCMServiceAccount(JSONValue.object(file).encoded) }
        #expect(error?.reason == "invalid_service_account")
        #expect(error?.message.hasPrefix("\(name) of the service account should be") == true)
        #expect(error?.message.contains("c2Vjcm") == false)
    }

    @Test func anECKeyAndAFileThatIsNoObjectAreRefused() throws {
        var file = try TestServiceAccount.file()
        file["private_key"] = .string(P256.Signing.PrivateKey().pemRepresentation)
        for bytes in [JSONValue.object(file).encoded, [], Array("[]".utf8), [UInt8](repeating: 0x20, count: 70_000)] {
            #expect(throws: ArgumentError.self) { try FCMServiceAccount(bytes) }
        }
    }

    @Test(arguments: ["http://127.0.0.1:9", "https://x.example.com/path", "ftp://x", "x"])
    func anotherURLHasToBeHTTPS(url: String) throws {
        let file = JSONValue.object(try TestServiceAccount.file()).encoded
        let error = #expect(throws: ArgumentError.self) { try FCMServiceAccount(file, url: url) }
        #expect(error?.reason == "invalid_url")
        let account = try FCMServiceAccount(file, url: "https://fcm.example.com:8443/")
        #expect(account.sendURL == "https://fcm.example.com:8443/v1/projects/chat-1/messages:send")
    }

    @Test func plainHTTPGoesToThisMachineOnly() throws {
        let file = JSONValue.object(try TestServiceAccount.file()).encoded
        for url in ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9"] {
            #expect(throws: Never.self) { try FCMServiceAccount(file, url: url, allowsLoopback: true) }
        }
        for url in ["http://192.0.2.1", "http://fcm.example.com"] {
            #expect(throws: ArgumentError.self) { try FCMServiceAccount(file, url: url, allowsLoopback: true) }
        }
    }

    @Test func anAccountNeverPrintsItsKey() throws {
        let account = try FCMServiceAccount(JSONValue.object(try TestServiceAccount.file()).encoded)
        var dumped = "\(account) \(String(reflecting: account))"
        dump(account, to: &dumped)
        #expect(!dumped.contains("PRIVATE") && dumped.contains("chat-1") && !dumped.contains("k1"))
    }
}

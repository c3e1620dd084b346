import HatoIdentity
import HatoModel
import Testing

@testable import HatoRuntime

struct ServiceKeysFileTests {
    private static let key = String(repeating: "k", count: 32)

    @Test func keysAreReadWithTheirMethods() async throws {
        let text = """
            - name: notifier
              key: \(Self.key)
              methods: [messages.get, messages.follow]
              as: true
            - {"name": "messages", "key": "\(Self.key)2", "methods": ["auth.follow"]}
            """
        var identity = IdentityConfiguration()
        identity.serviceKeys = try ServiceKeysFile.keys(text, of: "keys.yaml")
        let authenticator = ServiceAuthenticator(configuration: identity, administratorKeys: .none) { [] }
        #expect(
            authenticator.remembered(Self.key)
                == .service(.init(name: "notifier", methods: ["messages.get", "messages.follow"], mayUseAs: true)))
        #expect(authenticator.remembered("\(Self.key)2") == .service(.init(name: "messages", methods: ["auth.follow"])))
        #expect(authenticator.remembered("\(Self.key)3") == nil)
    }

    @Test func keyOfAGatewayNeedsNoMethods() throws {
        let text = "- {name: gateway, key: \(Self.key), forward: true}"
        var identity = IdentityConfiguration()
        identity.serviceKeys = try ServiceKeysFile.keys(text, of: "keys.yaml")
        let authenticator = ServiceAuthenticator(configuration: identity, administratorKeys: .none) { [] }
        #expect(
            authenticator.remembered(Self.key) == .service(.init(name: "gateway", methods: [], mayForward: true)))
    }

    /// Its holder would be an administrator of every method.
    @Test func keyOfAnAdministratorIsNoKeyOfAService() throws {
        let administrators = try #require(AdministratorKeys(keys: [Self.key]))
        let text = "- {name: notifier, key: \(Self.key), methods: [messages.get]}"
        let error = try #require(throws: SettingsError.self) {
            try ServiceKeysFile.keys(text, of: "keys.yaml", besides: administrators)
        }
        #expect("\(error)".contains("\"notifier\": its key is an administrator key"))
        #expect(!"\(error)".contains(Self.key))
        #expect(throws: Never.self) { try ServiceKeysFile.keys(text, of: "keys.yaml") }
    }

    @Test(arguments: [
        ("{", "is no YAML or JSON"), ("a: 1", "must be a list"), ("- 1", "entry 1: must have name, key and methods"),
        ("- {key: KEY, methods: [a.b]}", "entry 1: name must be a text"),
        ("- {name: a, methods: [a.b]}", "entry 1: \"a\" has no key"),
        ("- {name: a, key: KEY}", "entry 1: \"a\" has no methods"),
        ("- {name: a, key: KEY, methods: []}", "methods must be a list"),
        ("- {name: a, key: KEY, methods: [get]}", "methods must be a list"),
        (
            "- {name: a, key: KEY, methods: [a.b, session.authenticate]}",
            "\"a\": session.authenticate is for every caller"
        ),
        ("- {name: a, key: KEY, methods: [a.b], as: maybe}", "as must be true or false"),
        ("- {name: a, key: KEY, forward: 1}", "forward must be true or false"),
        ("- {name: a, key: KEY, forward: false}", "entry 1: \"a\" has no methods"),
        ("- {name: a, key: KEY, methods: [session.forward]}", "leave it out of methods, and set forward: true"),
        ("- {name: a, key: KEY, methods: [a.b], forwards: true}", "has no member \"forwards\""),
        ("- {name: a, key: short, methods: [a.b]}", "\"a\": its key has 5 bytes, at least 32 are needed"),
        (
            "[{name: a, key: KEY, methods: [a.b]}, {name: a, key: KEY2, methods: [a.b]}]",
            "another entry has the same name"
        ),
        ("[{name: a, key: KEY, methods: [a.b]}, {name: b, key: KEY, methods: [a.b]}]", "\"a\" has the same key"),
    ])
    func wrongFilesAreRefusedWithoutTheirKeys(_ text: String, _ problem: String) throws {
        let error = try #require(throws: SettingsError.self) {
            try ServiceKeysFile.keys(text.replacing("KEY", with: Self.key), of: "keys.yaml")
        }
        #expect("\(error)".contains("keys.yaml: ") && "\(error)".contains(problem), "\(error)")
        #expect(!"\(error)".contains(Self.key))
    }
}

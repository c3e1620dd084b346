import HatoModel
import HatoRPC
import Logging
import Testing

@testable import HatoRuntime

@Suite struct SettingsTests {
    private let resolver = SettingsResolver(
        service: "messages",
        declared: [
            Setting("port", .integer(0...65535), default: "7702", help: "port"),
            Setting("host", .text, default: "127.0.0.1", help: "host"),
            Setting("project", .name, default: "hato", shared: true, help: "project"),
            Setting("data", .file, required: true, help: "data"),
            Setting("quiet", .flag, default: "false", help: "quiet"),
            Setting("auth", .address, help: "auth"),
            Setting("secret", .integer(1...9), secret: true, help: "secret"),
        ] + ServeSettings.fromWhere)

    private func resolve(
        _ arguments: [String], _ environment: [String: String] = [:], file: [String: String] = [:]
    ) throws -> Settings {
        try resolver.resolve(
            flags: try resolver.flags(of: arguments), environment: environment,
            file: SettingsFile(path: "hato.yaml", values: file))
    }

    @Test func flagsWinOverEnvironmentOverFileOverDefaults() throws {
        let environment = ["HATO_MESSAGES_PORT": "2", "HATO_MESSAGES_HOST": "e"]
        let file = ["port": "3", "host": "f", "project": "p"]
        let settings = try resolve(["--data", "d", "--port=1"], environment, file: file)
        #expect(settings.integer("port") == 1)
        #expect(settings["host"] == "e")
        #expect(settings["project"] == "p")
        #expect(!settings.flag("quiet"))
        #expect(settings.text("auth") == nil)
    }

    @Test func theVariableOfTheCommandsIsNoSetting() throws {
        #expect(try resolve(["--data", "d"], ["HATO_MESSAGES_SERVER": "host:7702"])["host"] == "127.0.0.1")
        #expect(throws: SettingsError.self) { try resolve(["--data", "d"], ["HATO_MESSAGES_SEVER": "host:7702"]) }
    }

    /// The range of a setting is within the range of its limit: a server starts with each of them at its largest.
    @Test func aServerStartsWithEveryLimitAtItsLargest() async throws {
        let flags = ServeSettings.wire.reduce(into: [String: String]()) { flags, setting in
            guard case .integer(let range) = setting.kind, setting.name != "event-loops" else { return }
            flags[setting.name] = String(range.upperBound)
        }
        let resolver = SettingsResolver(service: "check", declared: ServeSettings.wire)
        var configuration = RPCServerConfiguration(service: "check", version: "1")
        configuration.limits = ServeSettings.limits(try resolver.resolve(flags: flags, environment: [:]))
        let server = RPCServer(
            configuration, router: RPCRouter(), authenticator: NobodyKnown(), logger: Logger(label: "check"))
        let port = try await server.start().port
        let client = RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: port))
        #expect(try await client.call(Service.Health()).status == .ready)
        await client.close()
        await server.shutdown(grace: .seconds(5))
    }

    @Test func theServicesOwnVariableWinsOverTheSharedOne() throws {
        let shared = ["HATO_PROJECT": "all", "HATO_MESSAGES_DATA": "d"]
        #expect(try resolve([], shared)["project"] == "all")
        let both = shared.merging(["HATO_MESSAGES_PROJECT": "mine"]) { $1 }
        #expect(try resolve([], both)["project"] == "mine")
    }

    @Test(arguments: [
        (["--prot", "1"], "unknown flag --prot; did you mean port?"),
        (["--data"], "--data needs a value (PATH)"),
        (
            ["--project", "a b/c", "--data", "d"],
            "setting project (flag): 'a b/c' is no name of 1 to 63 letters a-z, A-Z, digits, -, _ and ., such as my-chat-1"
        ),
        (["--port", "x", "--data", "d"], "setting port (flag): 'x' is no whole number; give one from 0 to 65535"),
        (
            ["--port", "70000", "--data", "d"],
            "setting port (flag): '70000' is out of range; give a number from 0 to 65535"
        ),
        (
            ["--auth", "nowhere", "--data", "d"],
            "setting auth (flag): 'nowhere' is no HOST:PORT, such as 127.0.0.1:7701 or [::1]:7701"
        ),
        (["--data", "d", "--data", "e"], "--data is given twice"),
        (["--quiet", "maybe"], "setting quiet (flag): 'maybe' is neither true nor false"),
        (["stray"], "'stray' is no setting; settings are written --name value"),
        ([], "setting data is missing: give --data or HATO_MESSAGES_DATA (data)"),
    ])
    func aWrongFlagIsNamed(arguments: [String], message: String) {
        #expect(throws: SettingsError(message)) { try resolve(arguments) }
    }

    @Test func namesWithLongUnitsGetTheShortOnes() {
        let resolver = SettingsResolver(
            service: "auth", declared: [Setting("lock-ms-max", .integer(0...9), default: "1", help: "lock")])
        #expect(throws: SettingsError("unknown flag --lock-milliseconds-max; did you mean lock-ms-max?")) {
            try resolver.flags(of: ["--lock-milliseconds-max", "1"])
        }
        let variable = "HATO_AUTH_LOCK_MILLISECONDS_MAX"
        #expect(
            throws: SettingsError("unknown environment variable \(variable); did you mean HATO_AUTH_LOCK_MS_MAX?")
        ) {
            try resolver.resolve(flags: [:], environment: [variable: "1"])
        }
    }

    @Test func metricsListenOnLoopbackUnlessSetOtherwise() throws {
        let declared = ServeSettings.declared(defaultPort: 7702).filter { $0.name == ServeSettings.metricsHost }
        let settings = try SettingsResolver(service: "messages", declared: declared).resolve(
            flags: [:], environment: [:])
        #expect(settings[ServeSettings.metricsHost] == "127.0.0.1")
    }

    /// It is part of the issuer's address and of the gateway's paths.
    @Test func projectIsAName() throws {
        let project = try #require(ServeSettings.declared(defaultPort: 0).first { $0.name == "project" })
        for name in ["hato", "my-chat_1.example", String(repeating: "x", count: 63)] {
            #expect(project.problem(with: name) == nil, "\(name)")
        }
        for name in ["", "a b/c", "a/b", "鳩", "a\n", String(repeating: "x", count: 64)] {
            #expect(project.problem(with: name) != nil, "\(name)")
        }
    }

    @Test func unknownVariablesAndKeysAreNamedWithTheirSource() {
        #expect(
            throws: SettingsError("unknown environment variable HATO_MESSAGES_PROT; did you mean HATO_MESSAGES_PORT?")
        ) {
            try resolve(["--data", "d"], ["HATO_MESSAGES_PROT": "1"])
        }
        #expect(throws: SettingsError("unknown setting 'prot' in hato.yaml; did you mean port?")) {
            try resolve(["--data", "d"], file: ["prot": "1"])
        }
        #expect(
            throws: SettingsError(
                "setting port (environment variable HATO_MESSAGES_PORT): 'no' is no whole number; give one from 0 to 65535"
            )
        ) {
            try resolve(["--data", "d"], ["HATO_MESSAGES_PORT": "no"])
        }
    }

    @Test func aSecretIsNeverShown() throws {
        let settings = try resolve(["--data", "d", "--secret", "7"])
        #expect(settings.shown.first { $0.name == "secret" }?.value == "***")
        let error = #expect(throws: SettingsError.self) { try resolve(["--data", "d", "--secret", "abcd"]) }
        #expect(error?.description.contains("abcd") == false)
    }

    @Test func aFlagStandsAloneOrSaysItsValue() throws {
        #expect(try resolve(["--quiet", "--data", "d"]).flag("quiet"))
        #expect(try resolve(["--quiet", "false", "--data", "d"]).flag("quiet") == false)
        #expect(try resolve(["--quiet=true", "--data", "d"]).flag("quiet"))
    }

    @Test func aFileHasSectionsPerEnvironment() throws {
        let yaml = """
            port: 1
            tls: { key: k.pem }
            production:
              port: 2
            """
        let production = try SettingsFile(path: "f", text: yaml, environment: "production")
        #expect(production.values == ["port": "2", "tls-key": "k.pem"])
        let development = try SettingsFile(path: "f", text: yaml, environment: "development")
        #expect(development.values["port"] == "1")
        let json = try SettingsFile(path: "f", text: #"{"port": 3, "staging": {"port": 4}}"#, environment: "staging")
        #expect(json.values == ["port": "4"])
    }

    @Test(arguments: ["a: [1, 2]", "- a", "a: b: c:", "production: 3"])
    func aFileThatIsNoListOfNamesIsRefused(text: String) {
        #expect(throws: SettingsError.self) { try SettingsFile(path: "f", text: text, environment: "production") }
    }

    @Test func addressesAreHostAndPort() {
        #expect(ServiceAddress("localhost:1") == ServiceAddress(host: "localhost", port: 1))
        #expect(ServiceAddress("[::1]:7701")?.host == "::1")
        #expect(ServiceAddress("[::1]:7701").map { "\($0)" } == "[::1]:7701")
        for wrong in ["", ":1", "a", "a:b", "a:70000", "::1:1"] { #expect(ServiceAddress(wrong) == nil) }
    }
}

private struct NobodyKnown: Authenticator {
    func remembered(_ credential: String) -> Caller? { nil }

    func authenticate(_ credential: String) async throws -> Caller {
        throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "Nobody is known")
    }
}

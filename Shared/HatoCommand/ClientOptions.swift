public import ArgumentParser
import Foundation
public import HatoModel
public import HatoRPC

/// The options of every command that calls a service.
///
/// Flags override the environment (`HATO_AUTH_SERVER`, `HATO_MESSAGES_SERVER` or `HATO_NOTIFIER_SERVER`, `HATO_TOKEN`,
/// `HATO_ADMIN_KEY_FILE`, and for TLS `ClientTLSEnvironment`); a credential given as a flag overrides both credentials
/// of the environment.
public struct ClientOptions: ParsableArguments, Sendable {
    @Option(help: ArgumentHelp("Where the service listens.", valueName: "host:port"))
    public var server: String?

    @Option(
        help: "The ID token to call with; others on this machine can see it, not so with --token-file or HATO_TOKEN.")
    public var token: String?

    @Option(
        help: ArgumentHelp("The file whose first line is the ID token to call with; - is stdin.", valueName: "file"))
    public var tokenFile: String?

    @Option(help: ArgumentHelp("The file that holds the administrator key.", valueName: "file"))
    public var adminKeyFile: String?

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("Evaluate the rules as this user (administrators).", valueName: "uid"))
    public var speaksAs: String?

    @Flag(help: "Evaluate the rules without a signed-in user (administrators).")
    public var asNobody = false

    @Option(help: ArgumentHelp("Use TLS and trust these authorities (PEM); HATO_TLS_CA.", valueName: "file"))
    public var tlsCa: String?

    @Flag(help: "Use TLS and trust the authorities of the operating system; HATO_TLS=true.")
    public var tls = false

    @Option(help: ArgumentHelp("Show this certificate to the service (PEM); HATO_TLS_CERTIFICATE.", valueName: "file"))
    public var tlsCertificate: String?

    @Option(help: ArgumentHelp("The key of that certificate (PEM); HATO_TLS_KEY.", valueName: "file"))
    public var tlsKey: String?

    @Option(
        help: ArgumentHelp(
            "The name the service's certificate bears, if not its host; HATO_TLS_SERVER_NAME.", valueName: "name"))
    public var tlsServerName: String?

    @Option(help: ArgumentHelp("How long a call may take.", valueName: "seconds"))
    public var timeout: Double = 30

    @Flag(help: "Print JSON, also on a terminal.")
    public var json = false

    @Option(
        help: ArgumentHelp(
            "Print one member of the result alone, a text without quotes: for scripts.", valueName: "member"))
    public var only: String?

    public init() {}

    public func validate() throws {
        if [token, tokenFile, adminKeyFile].count(where: { $0 != nil }) > 1 {
            throw ValidationError("Give one of --token, --token-file and --admin-key-file.")
        }
        if asNobody, speaksAs != nil { throw ValidationError("Give --as or --as-nobody, not both.") }
        if (tlsCertificate == nil) != (tlsKey == nil) {
            throw ValidationError("--tls-certificate and --tls-key belong together.")
        }
        guard timeout > 0, timeout <= 86_400 else { throw ValidationError("--timeout is in seconds, 0 to 86400.") }
    }
}

/// The options resolved with the environment and the files they name.
public struct ClientSettings: Sendable {
    public var configuration: RPCClientConfiguration
    /// Nil: no credential.
    public var credential: String?
    /// The value of `as` in every call; nil: absent.
    public var speaksAs: JSONValue?

    /// Resolves the options for the service of `target`: its environment variable, and its port on loopback when no
    /// server is named. Throws `CommandFailure`.
    public init<Target: CommandTarget>(
        _ options: ClientOptions, _ target: Target.Type, environment: [String: String]
    ) throws {
        let address = options.server ?? environment[Target.serverVariable] ?? "127.0.0.1:\(Target.port)"
        guard var configuration = RPCClientConfiguration(address: address) else {
            throw CommandFailure(.usage, "'\(address)' is no address; give HOST:PORT, e.g. 127.0.0.1:\(Target.port)")
        }
        configuration.timeout = .milliseconds(Int(options.timeout * 1000))
        configuration.tls = try ClientTLSEnvironment(Target.service, environment).tls(options)
        credential = try Self.credential(options, environment)
        if let credential { configuration = configuration.with(credential: credential) }
        self.configuration = configuration
        speaksAs = options.asNobody ? .null : options.speaksAs.map { ["uid": .string($0)] }
        if speaksAs != nil, credential == nil {
            throw CommandFailure(.usage, "--as is for administrators: name the key with --admin-key-file")
        }
    }

    private static func credential(_ options: ClientOptions, _ environment: [String: String]) throws -> String? {
        if let token = options.token { return token }
        if let file = options.tokenFile { return try SecretInput.line("ID token", in: file) }
        if let file = options.adminKeyFile { return try administratorKey(in: file) }
        if let token = environment["HATO_TOKEN"], !token.isEmpty { return token }
        if let file = environment["HATO_ADMIN_KEY_FILE"], !file.isEmpty { return try administratorKey(in: file) }
        return nil
    }

    /// The first key of the file: the others stay until every service has the new one.
    private static func administratorKey(in file: String) throws -> String {
        let text: String
        do { text = String(decoding: try CommandInput.bytes(of: file, as: "--admin-key-file"), as: UTF8.self) } catch {
            throw CommandFailure(.inputOutput, "the administrator key file: \(error.message)")
        }
        let keys = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }.filter {
            !$0.isEmpty
        }
        guard let key = keys.first else {
            throw CommandFailure(.configuration, "the administrator key file '\(file)' holds no key")
        }
        return key
    }
}

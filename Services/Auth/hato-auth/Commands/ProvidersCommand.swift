import ArgumentParser
import HatoCommand
import HatoModel

/// The providers whose ID tokens sign in, for administrators.
struct ProvidersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "providers", abstract: "Providers of identities such as Google and Apple, for administrators.",
        subcommands: [Set.self, List.self, Remove.self])

    struct Set: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "set", abstract: Auth.Providers.Set.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The id: google.com, apple.com, or one of your own such as oidc.work.") var id: String
        @Option(help: "The issuer; not needed for google.com and apple.com.") var issuer: String?
        @Option(
            name: .customLong("client-id"),
            help: "The id of your app at the provider; again for each further app.")
        var clientIds: [String]
        @Option(
            help: ArgumentHelp(
                "The file with its public keys, a JWK Set; - is stdin. Without it they are fetched.", valueName: "file")
        )
        var jwksFile: String?
        @Flag(inversion: .prefixedNo, help: "Whether an address that it calls verified is that of the user.")
        var trustsEmail: Bool
        @Flag(inversion: .prefixedNo, help: "Whether a sign-in makes an account.") var allowsSignUp: Bool
        @Flag(help: "The users of the issuer are those of the one before it: identities of accounts stay.")
        var keepsIdentities = false

        func request() throws -> Auth.Providers.Set {
            var request = Auth.Providers.Set(id: id, clientIds: clientIds)
            request.issuer = issuer
            request.jwks = try jwksFile.map { file in
                let bytes = try CommandInput.bytes(of: file)
                guard let json = try? JSONParser.parse(bytes) else {
                    throw ValidationError("--jwks-file \(file): the file is no JSON.")
                }
                return json
            }
            request.trustsEmail = trustsEmail
            request.allowsSignUp = allowsSignUp
            request.keepsIdentities = keepsIdentities ? true : nil
            return request
        }
    }

    struct List: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "list", abstract: Auth.Providers.List.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Auth.Providers.List { Auth.Providers.List() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["id", "issuer", "trustsEmail", "allowsSignUp"], of: result["providers"]?.array ?? [])
        }
    }

    struct Remove: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "remove", abstract: Auth.Providers.Remove.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The id, as `providers list` shows it.") var id: String

        func request() throws -> Auth.Providers.Remove { Auth.Providers.Remove(id: id) }
    }
}

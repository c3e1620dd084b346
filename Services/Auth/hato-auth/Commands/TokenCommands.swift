import ArgumentParser
import HatoAuth
import HatoCommand
import HatoModel

/// Tokens with which trusted servers sign their users in.
struct CustomTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "custom-token", abstract: "Tokens with which trusted servers sign their own users in.",
        subcommands: [Create.self, SignIn.self])

    struct Create: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "create", abstract: Auth.CustomToken.Create.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid; signing in makes the account when there is none.") var uid: String
        @Option(help: ArgumentHelp("Claims of the ID tokens, such as '{\"room\":\"hq\"}'.", valueName: "json"))
        var claims: String?

        func request() throws -> Auth.CustomToken.Create {
            Auth.CustomToken.Create(uid: uid, claims: try claims.map(Self.object))
        }

        private static func object(_ text: String) throws -> JSONObject {
            guard case .object(let object)? = try? JSONParser.parse(Array(text.utf8), depth: 64) else {
                throw ValidationError(#"--claims: give a JSON object, such as '{"room":"hq"}'."#)
            }
            return object
        }
    }

    struct SignIn: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "sign-in", abstract: Auth.SignInWithCustomToken.summary)

        @OptionGroup var options: ClientOptions
        @Option(
            help: ArgumentHelp(
                "The file whose first line is the custom token; without it, a line of stdin is read.",
                valueName: "file"))
        var customTokenFile: String?
        @Option(help: "The name of the device, in the list of sessions.") var label: String?

        func request() throws -> Auth.SignInWithCustomToken {
            Auth.SignInWithCustomToken(token: try SecretInput.line("custom token", in: customTokenFile), label: label)
        }
    }
}

/// Service accounts whose custom tokens are taken.
struct SignersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signers", abstract: "Service accounts whose custom tokens are taken.",
        subcommands: [Set.self, List.self, Remove.self])

    struct Set: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: Auth.CustomToken.Signers.Set.summary,
            discussion: """
                The file of a Google service account has the private half of the key alone. The public half is computed \
                here, and nothing else of the file is sent.
                """)

        @OptionGroup var options: ClientOptions
        @Option(help: "The service account, with --public-key-file.") var email: String?
        @Option(help: ArgumentHelp("The file of its public key, in PEM; - is stdin.", valueName: "file"))
        var publicKeyFile: String?
        @Option(
            help: ArgumentHelp(
                "The JSON file of a Google service account, instead of both; - is stdin.", valueName: "file"))
        var serviceAccountFile: String?

        func request() throws -> Auth.CustomToken.Signers.Set {
            switch (serviceAccountFile, email, publicKeyFile) {
            case (let path?, nil, nil):
                let bytes = try CommandInput.bytes(of: path)
                do {
                    let file = try ServiceAccountFile(bytes)
                    return Auth.CustomToken.Signers.Set(email: file.email, publicKey: file.publicKey)
                } catch { throw CommandFailure(.usage, "\(path) \(error)") }
            case (nil, let email?, let path?):
                let key = String(decoding: try CommandInput.bytes(of: path), as: UTF8.self)
                // The service refuses it, too; it must not go over the network.
                guard !key.contains("PRIVATE KEY") else {
                    throw CommandFailure(
                        .usage, "\(path) has a private key; give the public half (openssl rsa -pubout)")
                }
                return Auth.CustomToken.Signers.Set(email: email, publicKey: key)
            default: throw ValidationError("Give --service-account-file, or --email and --public-key-file.")
            }
        }
    }

    struct List: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: Auth.CustomToken.Signers.List.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "The `after` of the previous page.") var after: String?
        @Option(help: "The maximum number of service accounts, 1 to 1,000.") var limit: Int?

        func request() throws -> Auth.CustomToken.Signers.List {
            Auth.CustomToken.Signers.List(after: after, limit: limit)
        }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["email", "keyBits", "createdAt"], of: result["signers"]?.array ?? [])
        }
    }

    struct Remove: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: Auth.CustomToken.Signers.Remove.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The service account, as `signers list` shows it.") var email: String

        func request() throws -> Auth.CustomToken.Signers.Remove { Auth.CustomToken.Signers.Remove(email: email) }
    }
}

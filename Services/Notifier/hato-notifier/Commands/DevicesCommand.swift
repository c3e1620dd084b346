import ArgumentParser
import HatoCommand
import HatoModel

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "The devices notifications go to.",
        subcommands: [List.self, Register.self, RotateSecret.self, Unregister.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Devices.List.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "Only of this user (administrators).") var uid: String?
        @Option(help: "Go on after this device.") var after: String?
        @Option(help: "At most so many.") var limit: Int?

        func request() throws -> Notifier.Devices.List { .init(uid: uid, after: after, limit: limit) }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["device", "uid", "platform", "url", "state"], of: result["devices"]?.array ?? [])
        }
    }

    struct Register: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Devices.Register.summary,
            discussion: "Prints the signing secret once: give it to the receiver.")

        @OptionGroup var options: ClientOptions
        @Argument(help: "Where the webhook is delivered.") var url: String
        @OptionGroup var secret: SecretOption
        @Option(help: "Whose device it is (administrators).") var uid: String?
        @Option(help: "The app on the device.") var app: String?
        @Option(help: "The language of its user.") var locale: String?

        func request() throws -> Notifier.Devices.Register {
            var request = Notifier.Devices.Register(url: url, secret: try secret.value(), uid: uid)
            request.app = app
            request.locale = locale
            return request
        }
    }

    struct RotateSecret: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Devices.RotateSecret.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The device.") var device: String
        @OptionGroup var secret: SecretOption

        func request() throws -> Notifier.Devices.RotateSecret { .init(device: device, secret: try secret.value()) }
    }

    struct Unregister: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Devices.Unregister.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The device.") var device: String

        func request() throws -> Notifier.Devices.Unregister { .init(device: device) }
    }
}

/// The signing secret of a webhook.
struct SecretOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file whose first line is a secret of your own: whsec_ and base64 of 24 to 64 bytes; - is stdin.",
            valueName: "file"))
    var secretFile: String?

    /// Nil: the service makes one.
    func value() throws -> String? { try secretFile.map { try SecretInput.line("secret", in: $0) } }
}

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
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Devices.List>>

        func request() throws -> Notifier.Devices.List { try fields.request() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["device", "uid", "platform", "app", "url", "state"], of: result["devices"]?.array ?? [])
        }
    }

    struct Register: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Devices.Register.summary,
            discussion: """
                Give the address of one platform: a URL, one of the files, or --email. A new webhook gets a signing \
                secret that is printed once: give it to the receiver. Examples: \
                hato-notifier devices register https://example.com/hooks/hato --token-file id-token; \
                hato-notifier devices register --apns-token-file device-token --environment sandbox --uid u1; \
                hato-notifier devices register --subscription-file subscription.json --locale ja-JP --uid u1
                """)

        @OptionGroup var options: ClientOptions
        @OptionGroup var address: AddressOptions
        @OptionGroup var secret: SecretOption
        @OptionGroup var fields: FieldOptions<RegistrationFields>

        func request() throws -> Notifier.Devices.Register {
            var members = try address.members()
            if let secret = try secret.value() { members["secret"] = .string(secret) }
            return try fields.request(with: members, from: address.sources)
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

/// What is said of a device besides its address.
enum RegistrationFields: OptionFields {
    typealias Object = Notifier.Devices.Register
    static let omitted: Set<String> = ["platform", "token", "fid", "subscription", "url", "secret"]
}

/// Where a device is. A token or a subscription comes from a file: knowing it is enough to register it.
struct AddressOptions: ParsableArguments {
    @Argument(help: "The URL that a webhook is delivered to.") var url: String?
    @Option(help: Self.file("device token of APNs")) var apnsTokenFile: String?
    @Option(help: Self.file("registration token of FCM")) var fcmTokenFile: String?
    @Option(help: Self.file("Firebase installation id")) var fcmFidFile: String?
    @Option(
        help: ArgumentHelp(
            "The file of the browser's PushSubscription, as JSON: endpoint and keys; - is stdin.", valueName: "file"))
    var subscriptionFile: String?
    @Flag(help: "E-mail to the verified address of the ID token.") var email = false

    private static func file(_ what: String) -> ArgumentHelp {
        ArgumentHelp("The file whose first line is the \(what); - is stdin.", valueName: "file")
    }

    func validate() throws {
        let given = [url, apnsTokenFile, fcmTokenFile, fcmFidFile, subscriptionFile].count { $0 != nil }
        guard given + (email ? 1 : 0) == 1 else {
            throw ValidationError(
                """
                Give one of a URL, --apns-token-file, --fcm-token-file, --fcm-fid-file, --subscription-file and \
                --email.
                """)
        }
    }

    /// The members of a registration. Throws `CommandFailure`.
    func members() throws(CommandFailure) -> JSONObject {
        if let url { return ["platform": "webhook", "url": .string(url)] }
        if let file = apnsTokenFile {
            return ["platform": "apns", "token": .string(try SecretInput.line("device token", in: file))]
        }
        if let file = fcmTokenFile {
            return ["platform": "fcm", "token": .string(try SecretInput.line("registration token", in: file))]
        }
        if let file = fcmFidFile {
            return ["platform": "fcm", "fid": .string(try SecretInput.line("installation id", in: file))]
        }
        if let file = subscriptionFile {
            return ["platform": "webpush", "subscription": try CommandInput.json(of: file, as: "--subscription-file")]
        }
        return ["platform": "email"]
    }

    /// Where members come from, for errors.
    var sources: [String: String] {
        subscriptionFile.map { ["subscription": "--subscription-file \($0)"] } ?? [:]
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

import ArgumentParser
import HatoCommand
import HatoModel

struct SendCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: Notifier.Send.summary,
        discussion: """
            Examples: hato-notifier send --to u1 --to u2 --title お知らせ --body 'メンテナンスは明日です'; \
            hato-notifier send --topic news --type search_results_list --data search_keyword=鳩 --data order=new
            """)

    @OptionGroup var options: ClientOptions
    @Option(help: "A user to notify. May be repeated.") var to: [String] = []
    @Option(help: "A device to notify. May be repeated.") var device: [String] = []
    @Option(help: "Notify the users of a topic.") var topic: String?
    @OptionGroup var tokens: TokensOption
    @OptionGroup var token: FieldOptions<TokenFields>
    @OptionGroup var text: FieldOptions<AllFields<Notifier.NotificationText>>
    @OptionGroup var fields: FieldOptions<SendFields>
    @OptionGroup var delivery: FieldOptions<DeliveryFields>

    func request() throws -> Notifier.Send {
        var members: JSONObject = ["to": .object(try target())]
        for (name, group) in [("notification", try text.members()), ("options", try delivery.members())] {
            if !group.isEmpty { members[name] = .object(group) }
        }
        return try fields.request(with: members, from: delivery.sources(of: "options"))
    }

    private func target() throws -> JSONObject {
        switch (to.isEmpty, device.isEmpty, topic, tokens.deviceTokensFile) {
        case (false, true, nil, nil): return ["uids": to.json]
        case (true, false, nil, nil): return ["devices": device.json]
        case (true, true, let topic?, nil): return ["topic": .string(topic)]
        case (true, true, nil, let file?): return ["tokens": .array(try named(TokensOption.tokens(in: file)))]
        default: throw ValidationError("Give one of --to, --device, --topic and --device-tokens-file.")
        }
    }

    private func named(_ tokens: [String]) throws -> [JSONValue] {
        var members = try token.members()
        guard members["platform"] != nil else {
            throw ValidationError("--device-tokens-file needs --platform: apns or fcm.")
        }
        return tokens.map { token in
            members["token"] = .string(token)
            return .object(members)
        }
    }

    func validate() throws {
        guard tokens.deviceTokensFile != nil || token.isEmpty else {
            throw ValidationError("--platform and --app belong to --device-tokens-file.")
        }
    }
}

/// The fields of `notifier.send` that are no objects of the notifier's own.
enum SendFields: OptionFields {
    typealias Object = Notifier.Send
    static let omitted: Set<String> = ["to", "notification", "options"]
}

enum DeliveryFields: OptionFields {
    typealias Object = Notifier.DeliveryOptions
    static let names = ["ttlSeconds": "ttl"]
}

enum TokenFields: OptionFields {
    typealias Object = Notifier.NamedToken
    static let omitted: Set<String> = ["token"]
}

/// Tokens of devices, which others must not see.
struct TokensOption: ParsableArguments {
    @Option(help: ArgumentHelp("Notify the tokens in this file, one a line; - is stdin.", valueName: "file"))
    var deviceTokensFile: String?

    /// Throws `CommandFailure` for a file that cannot be read, or has no token.
    static func tokens(in file: String) throws(CommandFailure) -> [String] {
        let tokens = try SecretInput.lines(of: file, as: "--device-tokens-file")
        guard !tokens.isEmpty else {
            throw CommandFailure(.usage, "--device-tokens-file \(file): it has no token; give one a line")
        }
        return tokens
    }
}

struct SendToDeviceCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "send-to-device", abstract: Notifier.SendToDevice.summary,
        discussion: """
            The file holds the payload as JSON, e.g. {"notification":{"title":"マスオさんからのメッセージ",\
            "body":"ただいま","badge":"1","sound":"default"},"data":{"room_id":"r1"}}. Example: \
            hato-notifier send-to-device payload.json --device-tokens-file tokens --priority high
            """)

    @OptionGroup var options: ClientOptions
    @Argument(help: "The file of the payload; - reads it from stdin.") var file: String
    @OptionGroup var tokens: TokensOption
    @OptionGroup var fields: FieldOptions<SendToDeviceFields>
    @OptionGroup var delivery: FieldOptions<AllFields<Notifier.LegacyOptions>>

    func validate() throws {
        guard tokens.deviceTokensFile != nil else { throw ValidationError("Give --device-tokens-file.") }
    }

    func request() throws -> Notifier.SendToDevice {
        // Before one of them is read.
        if file == "-", tokens.deviceTokensFile == "-" {
            throw CommandInput.twoOnStdin("the payload", "--device-tokens-file")
        }
        let tokens = try TokensOption.tokens(in: tokens.deviceTokensFile ?? "-")
        var members: JSONObject = ["payload": try CommandInput.json(of: file, as: "the payload")]
        members["token"] = tokens.count == 1 ? .string(tokens[0]) : tokens.json
        let options = try delivery.members()
        if !options.isEmpty { members["options"] = .object(options) }
        return try fields.request(
            with: members, from: delivery.sources(of: "options").merging(["payload": "'\(file)'"]) { $1 })
    }
}

enum SendToDeviceFields: OptionFields {
    typealias Object = Notifier.SendToDevice
    static let omitted: Set<String> = ["token", "payload", "options"]
}

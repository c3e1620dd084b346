import ArgumentParser
import HatoCommand
import HatoModel

struct RespondCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "respond", abstract: Notifier.Respond.summary,
        discussion: """
            Examples: hato-notifier respond ntf_… REPLY --text 今行きます --reply-token-file reply-token; \
            hato-notifier respond ntf_… --quick-reply 0 --token-file id-token
            """)

    @OptionGroup var options: ClientOptions
    @Argument(help: "The notification.") var notification: String
    @Argument(help: "The action; or displayed, opened or dismissed.") var action: String?
    @Option(
        help: ArgumentHelp(
            "The file whose first line is hato.reply of the push, in place of an ID token; - is stdin.",
            valueName: "file"))
    var replyTokenFile: String?
    @OptionGroup var fields: FieldOptions<ResponseFields>

    func request() throws -> Notifier.Respond {
        var members: JSONObject = ["notification": .string(notification)]
        if let action { members["action"] = .string(action) }
        if let file = replyTokenFile {
            members["replyToken"] = .string(try SecretInput.line("reply token", in: file))
        }
        return try fields.request(with: members)
    }
}

enum ResponseFields: OptionFields {
    typealias Object = Notifier.Respond
    static let omitted: Set<String> = ["notification", "action", "replyToken"]
}

struct QuickRepliesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quick-replies", abstract: "The short texts with which a user responds.",
        subcommands: [Get.self, Set.self])

    struct Get: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.QuickReplies.Get.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.QuickReplies.Get>>

        func request() throws -> Notifier.QuickReplies.Get { try fields.request() }

        func table(_ result: JSONValue) -> CommandTable? {
            var table = CommandTable(["index", "text"])
            for (index, text) in (result["texts"]?.array ?? []).enumerated() {
                table.append([.number(Double(index)), text])
            }
            return table
        }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.QuickReplies.Set.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The texts, at most six; none: the defaults hold.") var texts: [String] = []

        func request() throws -> Notifier.QuickReplies.Set { .init(texts: texts) }
    }
}

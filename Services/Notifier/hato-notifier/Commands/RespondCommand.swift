import ArgumentParser
import HatoCommand
import HatoModel

struct RespondCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "respond", abstract: Notifier.Respond.summary,
        discussion: "Example: hato-notifier respond ntf_… REPLY --text 今行きます --token \"$ID_TOKEN\"")

    @OptionGroup var options: ClientOptions
    @Argument(help: "The notification.") var notification: String
    @Argument(help: "The action; or displayed, opened or dismissed.") var action: String?
    @Option(help: "In place of an action, a quick reply: 0 to 5.") var quickReply: Int?
    @Option(help: "The text of an action that takes one.") var text: String?
    @Option(help: "hato.reply of the push, in place of an ID token.") var replyToken: String?

    func request() throws -> Notifier.Respond {
        var request = Notifier.Respond(notification: notification, action: action, replyToken: replyToken)
        (request.quickReply, request.text) = (quickReply, text)
        return request
    }
}

struct QuickRepliesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quick-replies", abstract: "The short texts with which a user responds.",
        subcommands: [Get.self, Set.self])

    struct Get: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.QuickReplies.Get.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "The language of the defaults.") var locale: String?

        func request() throws -> Notifier.QuickReplies.Get { .init(locale: locale) }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.QuickReplies.Set.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The texts, at most six; none: the defaults hold.") var texts: [String] = []

        func request() throws -> Notifier.QuickReplies.Set { .init(texts: texts) }
    }
}

import ArgumentParser
import HatoCommand
import HatoModel

struct BadgesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "badges", abstract: "How many notifications users have not read.",
        subcommands: [Get.self, Set.self])

    struct Get: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Badges.Get.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Badges.Get>>

        func request() throws -> Notifier.Badges.Get { try fields.request() }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Badges.Set.summary,
            discussion: "Example: hato-notifier badges set 0 --thread c1 --uid u1")

        @OptionGroup var options: ClientOptions
        @Argument(help: "How many are unread.") var count: Int
        @OptionGroup var fields: FieldOptions<CountFields>

        func request() throws -> Notifier.Badges.Set { try fields.request(with: ["count": .number(Double(count))]) }
    }
}

enum CountFields: OptionFields {
    typealias Object = Notifier.Badges.Set
    static let omitted: Set<String> = ["count"]
}

struct WithdrawCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "withdraw", abstract: Notifier.Withdraw.summary,
        discussion: "Examples: hato-notifier withdraw ntf_4c7d1e9a2b6f8035 · withdraw --uid u1 --thread c1")

    @OptionGroup var options: ClientOptions
    @Argument(help: "The notification.") var notification: String?
    @Option(help: "The user whose notifications of a thread are withdrawn.") var uid: String?
    @Option(help: "The thread.") var thread: String?

    func request() throws -> Notifier.Withdraw {
        switch (notification, uid, thread) {
        case (let id?, nil, nil): .init(notification: id)
        case (nil, let uid?, let thread?): .init(uid: uid, thread: thread)
        default: throw ValidationError("Give either a notification, or --uid and --thread.")
        }
    }
}

import ArgumentParser
import HatoCommand
import HatoModel

struct PreferencesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preferences", abstract: "What users want of notifications.",
        subcommands: [Get.self, Set.self])

    struct Get: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Preferences.Get.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "Of this user (administrators).") var uid: String?

        func request() throws -> Notifier.Preferences.Get { .init(uid: uid) }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Preferences.Set.summary,
            discussion: """
                The file holds the members to replace as JSON, e.g. {"timeZone":"Asia/Tokyo",\
                "quiet":[{"days":["mon","tue"],"from":"22:00","to":"07:00","mode":"hold"}],\
                "mutes":{"c1":true},"off":null}
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file; - reads it from stdin.") var file: String
        @Option(help: "Of this user (administrators).") var uid: String?

        func request() throws -> Notifier.Preferences.Set {
            guard let object = try JSONParser.parse(CommandInput.bytes(of: file)).object else {
                throw CommandFailure(.usage, "'\(file)' holds no JSON object")
            }
            var request = try Notifier.Preferences.Set.decode(object)
            request.uid = uid ?? request.uid
            return request
        }
    }
}

import ArgumentParser
import HatoCommand
import HatoModel

struct AppsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apps", abstract: "The apps of the apps file, and their credentials.",
        subcommands: [List.self, Check.self, Reload.self, Resume.self, Key.self])

    /// A row for each provider of each app.
    static func table(_ result: JSONValue) -> CommandTable? {
        let rows = (result["apps"]?.array ?? []).flatMap { app in
            (app["providers"]?.array ?? []).map { provider -> JSONValue in
                var row = provider.object ?? JSONObject()
                row["app"] = app["app"]
                return .object(row)
            }
        }
        return CommandTable(["app", "platform", "status", "problem"], of: rows)
    }

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Apps.List.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Notifier.Apps.List { .init() }
        func table(_ result: JSONValue) -> CommandTable? { AppsCommand.table(result) }
    }

    struct Check: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Apps.Check.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The app; all when it is left out.") var app: String?

        func request() throws -> Notifier.Apps.Check { .init(app: app) }
        func table(_ result: JSONValue) -> CommandTable? { AppsCommand.table(result) }
    }

    struct Reload: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Apps.Reload.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Notifier.Apps.Reload { .init() }
        func table(_ result: JSONValue) -> CommandTable? { AppsCommand.table(result) }
    }

    struct Resume: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Apps.Resume.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The app.") var app: String
        @Option(help: "Only of this platform: apns, fcm or email.") var platform: String?

        func request() throws -> Notifier.Apps.Resume {
            let platform = try platform.map { name in
                guard let platform = Notifier.Platform(rawValue: name) else {
                    throw ValidationError("--platform is apns, fcm or email.")
                }
                return platform
            }
            return .init(app: app, platform: platform)
        }
    }

    struct Key: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            commandName: "webpush-key", abstract: Notifier.Webpush.Key.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The app; default when it is left out.") var app: String?

        func request() throws -> Notifier.Webpush.Key { .init(app: app) }
    }
}

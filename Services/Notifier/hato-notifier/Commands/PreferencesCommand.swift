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
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Preferences.Get>>

        func request() throws -> Notifier.Preferences.Get { try fields.request() }
        func table(_ result: JSONValue) -> CommandTable? { PreferenceLines.table(result) }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Preferences.Set.summary,
            discussion: """
                The file holds the members to replace as JSON, e.g. {"timeZone":"Asia/Tokyo",\
                "quiet":[{"days":["mon","tue"],"from":"22:00","to":"07:00","mode":"hold"}],\
                "mutes":{"c1":true},"off":null}. The same with options: hato-notifier preferences set \
                --time-zone Asia/Tokyo --quiet 'mon-tue 22:00-07:00 hold' --mute c1 --delete off
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file; - reads it from stdin. Options are in place of it.") var file: String?
        @OptionGroup var fields: FieldOptions<PreferenceFields>
        @OptionGroup var user: FieldOptions<PreferenceUser>
        @Option(
            help: ArgumentHelp(
                "A quiet window. May be repeated; the windows given replace those that are set.",
                valueName: "days from-to silent|hold"))
        var quiet: [String] = []
        @Option(
            help: ArgumentHelp(
                "A muted thread, for ever or until a time. May be repeated; those given replace those that are set.",
                valueName: "thread[=time]"))
        var mute: [String] = []
        @Option(help: "Delete what is set: timeZone, quiet, mutes, off. May be repeated.", transform: choice)
        var delete: [Member] = []

        enum Member: String, FieldChoice {
            case timeZone, quiet, mutes, off
        }

        func request() throws -> Notifier.Preferences.Set {
            let members = try chosen()
            guard let file else {
                guard !members.isEmpty else {
                    throw ValidationError("Give a file, or what to set, e.g. --time-zone Asia/Tokyo.")
                }
                return try user.request(with: members, from: fields.sources().merging(["quiet": "--quiet"]) { $1 })
            }
            guard members.isEmpty else { throw ValidationError("Give a file or options, not both.") }
            var request = try CommandInput.request(Notifier.Preferences.Set.self, of: file)
            request.uid = try user.members()["uid"]?.string ?? request.uid
            return request
        }

        /// What the options say.
        private func chosen() throws -> JSONObject {
            var members = try fields.members()
            if !quiet.isEmpty { members["quiet"] = .array(try quiet.map(PreferenceLines.window)) }
            if !mute.isEmpty {
                var mutes: JSONObject = [:]
                for line in mute {
                    let (thread, end) = try PreferenceLines.mute(line)
                    mutes[thread] = end
                }
                members["mutes"] = .object(mutes)
            }
            for member in delete {
                guard members[member.rawValue] == nil else {
                    throw ValidationError("--delete \(member.rawValue): it is set as well.")
                }
                members[member.rawValue] = .some(.null)
            }
            return members
        }

        func table(_ result: JSONValue) -> CommandTable? { PreferenceLines.table(result) }
    }
}

enum PreferenceFields: OptionFields {
    typealias Object = Notifier.Preferences.Set
    static let omitted: Set<String> = ["uid", "quiet", "mutes"]
}

enum PreferenceUser: OptionFields {
    typealias Object = Notifier.Preferences.Set
    static let omitted: Set<String> = ["timeZone", "quiet", "mutes", "off"]
}

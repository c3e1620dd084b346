extension Notifier {
    /// A day of the week.
    public enum Weekday: String, FieldChoice {
        case mon, tue, wed, thu, fri, sat, sun

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            let name = try String(json: json, unknown: unknown)
            guard let day = Weekday(rawValue: name) else {
                throw FieldError(
                    ArgumentError(
                        reason: Notifier.invalidQuiet,
                        "A day is one of \(Self.allCases.map(\.rawValue).joined(separator: ", "))"))
            }
            self = day
        }
    }

    /// What becomes of notifications in a quiet window.
    public enum QuietMode: String, FieldChoice {
        /// They come without sound.
        case silent
        /// They come when the window has ended.
        case hold

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            let name = try String(json: json, unknown: unknown)
            guard let mode = QuietMode(rawValue: name) else {
                throw FieldError(ArgumentError(reason: Notifier.invalidQuiet, "mode is silent or hold"))
            }
            self = mode
        }
    }

    /// The reason of errors about quiet windows.
    static let invalidQuiet = "invalid_quiet"

    /// A time of the day, as a clock on the wall shows it: `22:00`.
    public struct WallTime: FieldText, Hashable {
        /// Minutes since midnight, below 1,440.
        public let minutes: Int

        /// Throws `invalid_quiet` for anything but `00:00` to `23:59`.
        public init(_ text: String) throws(ArgumentError) {
            let digits = Array(text.utf8).map { Int($0) - 0x30 }
            guard digits.count == 5, digits[2] == 10, [0, 1, 3, 4].allSatisfy({ (0...9).contains(digits[$0]) }),
                digits[0] * 10 + digits[1] < 24, digits[3] < 6
            else {
                throw ArgumentError(
                    reason: Notifier.invalidQuiet, "A time of the day is from 00:00 to 23:59, e.g. 22:00")
            }
            minutes = (digits[0] * 10 + digits[1]) * 60 + digits[3] * 10 + digits[4]
        }

        public var description: String {
            [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
        }

        fileprivate init(minutes: Int) { self.minutes = minutes }
    }

    /// A part of the day in which a user is not to be disturbed.
    public struct QuietWindow: FieldObject, Hashable {
        public var days: [Weekday]
        public var from: WallTime
        public var to: WallTime
        public var mode: QuietMode

        public static let fields = Fields<Self>(
            blank: Self(days: [], from: WallTime(minutes: 0), to: WallTime(minutes: 0), mode: .silent),
            .required("days", \.days, "The days on which it begins: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`"),
            .required(
                "from", \.from,
                """
                The local time at which it begins, `00:00` to `23:59`; one that the clock leaves out on that day is \
                when the clock goes on
                """),
            .required(
                "to", \.to,
                """
                The local time at which it ends: on the next day when it is not later than `from`; one that the \
                clock shows twice is the second
                """),
            .required(
                "mode", \.mode,
                """
                `silent`: notifications come without sound, and interrupt as little as the platform can; `hold`: they \
                wait for the end of the window, where those of one thread become one
                """))

        public init(days: [Weekday], from: WallTime, to: WallTime, mode: QuietMode) {
            self.days = days
            self.from = from
            self.to = to
            self.mode = mode
        }
    }

    /// How long an action mutes a thread: `true`, or seconds.
    public enum MuteDuration: FieldValue, Hashable {
        case forever
        /// From 1 to `secondsMax`.
        case seconds(Int)

        /// 366 days.
        public static let secondsMax = 31_622_400

        public static var schema: JSONObject { ["type": ["integer", "boolean"]] }

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            if case .bool(true) = json {
                self = .forever
                return
            }
            guard case .number = json, let seconds = try? Int(json: json, unknown: unknown),
                (1...Self.secondsMax).contains(seconds)
            else {
                throw FieldError(
                    ArgumentError(
                        reason: "invalid_mute",
                        "mute is true (for ever) or 1 to 31,622,400 seconds, e.g. 28800 for eight hours"))
            }
            self = .seconds(seconds)
        }

        public var json: JSONValue {
            switch self {
            case .forever: .bool(true)
            case .seconds(let seconds): .number(Double(seconds))
            }
        }
    }

    /// Until when a thread is muted: `true`, or milliseconds since 1970.
    public enum MuteEnd: FieldValue, Hashable {
        case never
        case at(Int)

        public static var schema: JSONObject { ["type": ["integer", "boolean"]] }

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            if case .bool(true) = json {
                self = .never
                return
            }
            guard case .number = json, let time = try? Int(json: json, unknown: unknown), time >= 0 else {
                throw FieldError(
                    ArgumentError(
                        reason: "invalid_mute", "A thread is muted until true (for ever) or milliseconds since 1970"))
            }
            self = .at(time)
        }

        public var json: JSONValue {
            switch self {
            case .never: .bool(true)
            case .at(let time): .number(Double(time))
            }
        }
    }

    /// What a user wants of notifications.
    public struct UserPreferences: FieldObject, Hashable {
        public var timeZone: String?
        public var quiet: [QuietWindow]?
        public var mutes: [String: MuteEnd]?
        public var off: [Platform]?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("timeZone", \.timeZone, "The IANA time zone of the quiet windows; absent when none is set"),
            .optional("quiet", \.quiet, "The quiet windows; absent when there are none"),
            .optional("mutes", \.mutes, "The muted threads, and until when; absent when there are none"),
            .optional("off", \.off, "The platforms without notifications; absent when there are none"))

        /// Wants nothing.
        public init() {}

        static let example: UserPreferences = {
            var example = UserPreferences()
            example.timeZone = "Asia/Tokyo"
            example.quiet = [.example]
            example.mutes = ["c1": .never]
            return example
        }()
    }
}

extension Notifier.QuietWindow {
    fileprivate static let example = Notifier.QuietWindow(
        days: [.mon, .tue, .wed, .thu, .fri], from: .init(minutes: 22 * 60), to: .init(minutes: 7 * 60), mode: .hold)
}

extension Notifier.Preferences {
    /// Returns what a user wants of notifications.
    public struct Get: RPCRequest {
        public typealias Result = Notifier.UserPreferences
        public static let method = "notifier.preferences.get"
        public static let summary = "Returns the preferences of the caller: quiet windows, muted threads, platforms off"
        public static let access = Access.signedIn
        public static let effect = Effect.read

        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid,
                "The user; the caller when absent. Administrators must name it, other callers only their own",
                example: "u1"))

        public init(uid: String? = nil) { self.uid = uid }

        public static let example = RPCExample(Get(), Notifier.UserPreferences.example)
    }

    /// Changes what a user wants of notifications.
    public struct Set: RPCRequest {
        public typealias Result = Notifier.UserPreferences
        public static let method = "notifier.preferences.set"
        public static let summary = """
            Replaces the members that are given; null removes one. They count for what is sent from then on, also of \
            notifications that wait. Returns all preferences
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var uid: String?
        public var timeZone: Replacement<String>?
        public var quiet: Replacement<[Notifier.QuietWindow]>?
        public var mutes: Replacement<[String: Notifier.MuteEnd]>?
        public var off: Replacement<[Notifier.Platform]>?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid,
                "The user; the caller when absent. Administrators must name it, other callers only their own",
                example: "u1"),
            .replacing(
                "timeZone", \.timeZone,
                """
                The IANA time zone of the quiet windows, e.g. `Asia/Tokyo`. Without one, that of the device that was \
                registered last and has one; else UTC
                """, example: "Asia/Tokyo"),
            .replacing(
                "quiet", \.quiet,
                """
                The quiet windows, at most 14. Notifications with the interruption level `time-sensitive` or \
                `critical` pass, so do silent pushes and webhooks; e-mails wait where `hold` says so. `hold` counts more \
                than `silent`
                """),
            .replacing(
                "mutes", \.mutes,
                """
                The threads of which no notification is shown, each until `true` (for ever) or a time in \
                milliseconds since 1970; at most 1,000 (`too_many_mutes`), those that have ended do not count
                """, example: ["c1": .never]),
            .replacing(
                "off", \.off, "The platforms whose devices get nothing: `apns`, `fcm`, `webpush`, `webhook`",
                example: [.webpush]))

        public init(uid: String? = nil) { self.uid = uid }

        public static let example: RPCExample<Set> = {
            var request = Set()
            request.quiet = .value([.example])
            return RPCExample(request, Notifier.UserPreferences.example)
        }()
    }
}

extension Notifier.QuickReplies {
    /// The texts of users that have set none, by language.
    public static let defaults: [String: [String]] = [
        "ja": ["了解です", "今行きます", "ありがとう", "少し待って", "あとで連絡します", "いいね"],
        "en": ["OK", "On my way", "Thank you", "One moment, please", "I'll get back to you", "Great"],
    ]

    /// How many there are.
    public static let count = 6

    /// The texts of the caller.
    public struct Get: RPCRequest {
        public static let method = "notifier.quickReplies.get"
        public static let summary = """
            Returns the six quick replies of the caller: those at `/users/{uid}/quickReplies` of the default database, \
            read under the rules as the caller, and defaults where none stands, where the rules deny it, and in place \
            of more than 64 KiB
            """
        public static let access = Access.signedIn
        public static let effect = Effect.read
        public static let isSlow = true

        public var locale: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "locale", \.locale, "Of the defaults: `ja`, else `en`, which counts for every other one",
                example: "ja-JP"))

        public init(locale: String? = nil) { self.locale = locale }

        public struct Result: FieldObject, Hashable {
            public var texts: [String]

            public static let fields = Fields<Self>(
                blank: Self(texts: []),
                .required("texts", \.texts, "Six texts, by the index that `notifier.respond` takes"))
            public init(texts: [String]) { self.texts = texts }
        }

        public static let example = RPCExample(
            Get(locale: "ja-JP"), Result(texts: Notifier.QuickReplies.defaults["ja"] ?? []))
    }

    /// Replaces the texts of the caller.
    public struct Set: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.quickReplies.set"
        public static let summary = """
            Replaces the quick replies of the caller, at `/users/{uid}/quickReplies` of the default database, under \
            the rules as the caller; none: the defaults hold
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write
        public static let isSlow = true

        public var texts: [String]

        public static let fields = Fields<Self>(
            blank: Self(texts: []),
            .required(
                "texts", \.texts,
                """
                At most six texts, each of 1 to 200 characters (UTF-16 code units); for those that are missing at the \
                end the defaults hold
                """))

        public init(texts: [String]) { self.texts = texts }

        public static let example = RPCExample(Set(texts: ["了解です", "今行きます"]), Empty())
    }
}

extension Notifier.Types {
    /// Sets a type, or replaces the one with this name.
    public struct Set: RPCRequest {
        public static let method = "notifier.types.set"
        public static let summary = """
            Creates or replaces a type: what the data of its notifications must hold. Refused while a trigger of \
            the type does not fit it (`type_in_use`). A service has at most 1,000 types (`too_many_types`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var type: String
        public var required: [String: Notifier.PayloadKind]?
        public var optional: [String: Notifier.PayloadKind]?
        public var template: Notifier.NotificationText?
        public var localized: [String: Notifier.NotificationText]?
        public var category: String?
        public var timeSensitive: Bool?

        public static let fields = Fields<Self>(
            blank: Self(Notifier.PayloadType(type: "")),
            .required("type", \.type, "The name of the type: 1 to 256 bytes without control characters"),
            .optional(
                "required", \.required,
                """
                The kinds of the fields that `data` must have, by name (1 to 64 of `A-Z a-z 0-9 _ - .`), at most 64 \
                with `optional`. All values are texts: `string`: 1 to 1,000 code points; `int`: digits without \
                leading zeros, with or without `-` before them, within ±(2^53-1); `bool`: `true` or `false`; `id`: \
                a key that the tree may have; `url`: an absolute https URL of at most 2,048 bytes; `date`: \
                milliseconds since 1970 in digits. The empty text is of no kind
                """, example: ["search_keyword": .string]),
            .optional(
                "optional", \.optional, "The kinds of the fields that `data` may have, by name",
                example: ["page": .int]),
            .optional(
                "template", \.template,
                """
                The text of a notification that gives none: a title, a body or both; `{field}` is replaced by the \
                field, `{{` and `}}` are braces
                """, example: Notifier.NotificationText(title: "新着", body: "{search_keyword}")),
            .optional(
                "localized", \.localized, "The same by locale, at most 32, beside `template`",
                example: ["en": Notifier.NotificationText(title: "New", body: "{search_keyword}")]),
            .optional(
                "category", \.category, "The category of its notifications, 1 to 256 bytes", example: "SEARCH"),
            .optional(
                "timeSensitive", \.timeSensitive,
                "True: its notifications have the interruption level `time-sensitive` unless they name another",
                example: true))

        public init(_ type: Notifier.PayloadType) {
            self.type = type.type
            required = type.required
            optional = type.optional
            template = type.template
            localized = type.localized
            category = type.category
            timeSensitive = type.timeSensitive
        }

        /// The type to set.
        public var payloadType: Notifier.PayloadType { Notifier.PayloadType(self) }

        public struct Result: FieldObject, Hashable {
            public var created: Bool

            public static let fields = Fields<Self>(
                blank: Self(created: false),
                .required("created", \.created, "True for a new type, false for a replaced one"))
            public init(created: Bool) { self.created = created }
        }

        public static let example = RPCExample(Set(.example), Result(created: true))
    }

    public struct List: RPCRequest {
        public static let method = "notifier.types.list"
        public static let summary = "Lists the types, in the order of their names"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public struct Result: FieldObject, Hashable {
            public var types: [Notifier.PayloadType]

            public static let fields = Fields<Self>(
                blank: Self(types: []), .required("types", \.types, "The types in the order of their names"))
            public init(types: [Notifier.PayloadType]) { self.types = types }
        }

        public static let example = RPCExample(List(), Result(types: [.example]))
    }

    public struct Remove: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.types.remove"
        public static let summary = "Removes a type; refused while a trigger uses it (`type_in_use`)"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var type: String

        public static let fields = Fields<Self>(
            blank: Self(type: ""), .required("type", \.type, "The name of the type"))
        public init(type: String) { self.type = type }

        public static let example = RPCExample(Remove(type: "search_results_list"), Empty())
    }
}

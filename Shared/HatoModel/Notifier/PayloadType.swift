extension Notifier {
    /// What the data of a notification of one type must hold, and what the notification says.
    public struct PayloadType: FieldObject, Hashable {
        public var type: String
        public var required: [String: PayloadKind]?
        public var optional: [String: PayloadKind]?
        public var template: NotificationText?
        public var localized: [String: NotificationText]?
        public var category: String?
        public var timeSensitive: Bool?

        public static let fields = Fields<Self>(
            blank: Self(type: ""),
            .required("type", \.type, "The name of the type: 1 to 256 bytes without control characters"),
            .optional(
                "required", \.required, "The kinds of the fields that `data` must have, by name",
                example: ["search_keyword": .string]),
            .optional(
                "optional", \.optional, "The kinds of the fields that `data` may have, by name",
                example: ["page": .int]),
            .optional(
                "template", \.template,
                "The text of a notification that gives none; `{field}` is replaced by the field, `{{` and `}}` are braces",
                example: NotificationText(title: "新着", body: "{search_keyword}")),
            .optional(
                "localized", \.localized, "The same by locale, beside `template`",
                example: ["en": NotificationText(title: "New", body: "{search_keyword}")]),
            .optional(
                "category", \.category, "The category of its notifications, 1 to 256 bytes", example: "SEARCH"),
            .optional(
                "timeSensitive", \.timeSensitive,
                "True: its notifications have the interruption level `time-sensitive` unless they name another",
                example: true))

        public init(type: String, required: [String: PayloadKind] = [:], optional: [String: PayloadKind] = [:]) {
            self.type = type
            self.required = required.isEmpty ? nil : required
            self.optional = optional.isEmpty ? nil : optional
        }

        init(_ request: Types.Set) {
            type = request.type
            required = request.required
            optional = request.optional
            template = request.template
            localized = request.localized
            category = request.category
            timeSensitive = request.timeSensitive
        }

        static let example: Self = {
            var type = Self(type: "search_results_list", required: ["search_keyword": .string, "order": .string])
            type.template = .init(title: "新着商品", body: "{search_keyword}の新着商品があります")
            return type
        }()

        /// The name of the field that carries the type on the wire.
        public static let typeField = "transition_type"

        /// Checks values: required fields first, then optional ones, each in the order of their names. Fields that the
        /// type does not have are ignored. Throws `invalidData` with the first wrong field.
        public func check(_ values: [String: String]) throws(PayloadError) {
            for (name, kind) in (required ?? [:]).sorted(by: { $0.key < $1.key }) {
                guard let value = values[name], kind.accepts(value) else { throw .invalidData(field: name) }
            }
            for (name, kind) in (optional ?? [:]).sorted(by: { $0.key < $1.key }) {
                if let value = values[name], !kind.accepts(value) { throw .invalidData(field: name) }
            }
        }

        /// The kind of a field; nil for one that the type does not have.
        public func kind(of field: String) -> PayloadKind? { required?[field] ?? optional?[field] }

        /// The fields of a payload that the type has, checked. Throws `invalidData` with the first wrong field.
        public func values(in payload: JSONObject) throws(PayloadError) -> PayloadValues {
            var values: [String: String] = [:]
            for member in payload.members where kind(of: member.name) != nil {
                // What is no text is of no kind.
                values[member.name] = member.value.string ?? ""
            }
            try check(values)
            return PayloadValues(type: type, texts: values)
        }
    }
}

/// The fields of a payload that was checked.
public struct PayloadValues: Sendable, Hashable {
    /// The type of the payload.
    public let type: String
    /// The texts of the fields that the type has.
    public let texts: [String: String]

    /// The text of a field. Throws `invalidData` when it is not there.
    public func text(_ field: String) throws(PayloadError) -> String {
        guard let text = texts[field] else { throw .invalidData(field: field) }
        return text
    }

    /// The number of a field: an int, or the milliseconds of a date. Throws `invalidData` when it is none.
    public func number(_ field: String) throws(PayloadError) -> Int64 {
        guard let number = Notifier.PayloadKind.int(try text(field)) else { throw .invalidData(field: field) }
        return number
    }

    /// The value of a bool. Throws `invalidData` when it is none.
    public func flag(_ field: String) throws(PayloadError) -> Bool {
        switch try text(field) {
        case "true": return true
        case "false": return false
        default: throw .invalidData(field: field)
        }
    }

    /// The text of an optional field; nil when it is not there.
    public func optionalText(_ field: String) -> String? { texts[field] }
}

/// What a push makes an app do: a struct for each type.
public protocol PushTransition: Sendable {
    /// What a payload of the type holds.
    static var payloadType: Notifier.PayloadType { get }
    /// Takes the fields, which are checked. Throws `invalidData` for one that is not there.
    init(_ values: PayloadValues) throws(PayloadError)
}

/// The transitions that an app knows; makes one of a payload, or throws.
public struct PushTransitions: Sendable {
    private let transitions: [String: any PushTransition.Type]

    /// Of two with the same type, the later one counts.
    public init(_ transitions: [any PushTransition.Type]) {
        self.transitions = Dictionary(transitions.map { ($0.payloadType.type, $0) }) { $1 }
    }

    /// The transition that a payload means; fields that its type does not have are ignored. Throws `invalidType` or
    /// `invalidData`; nothing should happen then.
    public func decode(_ payload: JSONObject) throws(PayloadError) -> any PushTransition {
        guard let type = payload[Notifier.PayloadType.typeField]?.string, let transition = transitions[type] else {
            throw .invalidType
        }
        return try transition.init(transition.payloadType.values(in: payload))
    }

    /// The same for the data of FCM, which are texts.
    public func decode(_ payload: [String: String]) throws(PayloadError) -> any PushTransition {
        try decode(JSONObject(uniqueMembers: payload.map { .init($0.key, .string($0.value)) }))
    }
}

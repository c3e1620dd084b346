public import HatoModel

/// The categories that come with the notifier, to be set as they are or to begin with.
public enum ShippedCategories: String, CaseIterable, Sendable {
    /// `QUICK6`: four quick replies and a text, which are pushed into the chat that the notification's thread names.
    /// Services that use it have its actions for ever: others need another id.
    case quickReplies = "quick-replies"

    /// Throws `ArgumentError` that names those there are.
    public init(name: String) throws(ArgumentError) {
        guard let category = Self(rawValue: name) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw ArgumentError(
                reason: "unknown_category", "There is no category \"\(name)\" that comes along; there are \(known)")
        }
        self = category
    }

    /// The call that sets it. Throws what reading the category throws.
    public func request() throws -> Notifier.Categories.Set {
        try Notifier.Categories.Set.decode(try JSONParser.parse(PackageResources.quick_replies_json).object ?? [:])
    }
}

extension ShippedTriggers {
    /// The category of its notifications, which is set before the trigger; nil: they have none.
    public var category: ShippedCategories? {
        switch self {
        case .chat: .quickReplies
        case .latestMessage: nil
        }
    }
}

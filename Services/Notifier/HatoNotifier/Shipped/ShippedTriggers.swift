public import HatoModel

/// The triggers that come with the notifier, to be set as they are or to begin with.
public enum ShippedTriggers: String, CaseIterable, Sendable {
    /// New messages of the chats that the rules of `hato-dev --rules chat` describe: groups and chats of two.
    case chat
    /// The message at `/latest_message`, to the FCM token in it: what a Cloud Function of many prototypes does.
    case latestMessage = "latest-message"

    /// Throws `ArgumentError` that names those there are.
    public init(name: String) throws(ArgumentError) {
        guard let trigger = Self(rawValue: name) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw ArgumentError(
                reason: "unknown_trigger", "There is no trigger \"\(name)\" that comes along; there are \(known)")
        }
        self = trigger
    }

    /// The call that sets it. Throws what reading the trigger throws.
    public func request() throws -> Notifier.Triggers.Set {
        let bytes =
            switch self {
            case .chat: PackageResources.chat_json
            case .latestMessage: PackageResources.latest_message_json
            }
        return try Notifier.Triggers.Set.decode(try JSONParser.parse(bytes).object ?? [:])
    }
}

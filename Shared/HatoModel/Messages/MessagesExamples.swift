/// The paths and values in the examples of the methods.
enum MessagesExamples {
    static let otherDatabase = DatabaseName(rawValue: "staging") ?? .default
    static let room = path("chats", "c1")
    static let title = path("chats", "c1", "title")
    static let typing = path("chats", "c1", "typing", "masuo")
    static let status = path("users", "masuo", "status")
    static let messages = path("chats", "c1", "messages")
    static let key = PushKey(milliseconds: 1_795_000_000_000, random: (0, 0))
    static let message = path("chats", "c1", "messages", key.text)
    static let pattern = FeedPattern(
        segments: [
            .key(TreeKey(unchecked: "chats")), .any("chat"), .key(TreeKey(unchecked: "messages")), .any("id"),
        ])
    static let epoch = "0123456789abcdef0123456789abcdef"
    static let subscription = "1k8f3q-1"
    static let query = TreeQuery(order: .child(path("date")), limit: .last(50))
    static let etag = "eMfSk0nU+CieTkCbO5r7cKNp7qU="
    static let rules = #"{"rules": {".read": "auth != null"}}"#
    static let value: JSONValue = ["date": 1_795_000_000_000, "senderId": "masuo", "text": "ただいま"]

    private static func path(_ keys: String...) -> TreePath {
        TreePath(uncheckedKeys: keys.map(TreeKey.init(unchecked:)))
    }
}

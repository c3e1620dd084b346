/// The path pattern of a rule: the pattern of the parent node and one key. Rules of one branch share it, so that long
/// keys with many rules below them are stored once.
final class RulesPattern: Sendable {
    let parent: RulesPattern?
    private let key: String

    /// - Parameter parent: the pattern of the parent; nil: the root.
    init(_ key: String, below parent: RulesPattern?) {
        self.key = key
        self.parent = parent
    }

    /// E.g. `/chats/$chat`.
    var text: String {
        var keys: [String] = []
        var pattern: RulesPattern? = self
        while let next = pattern {
            keys.append(next.key)
            pattern = next.parent
        }
        return keys.reversed().map { "/" + $0 }.joined()
    }
}

import HatoModel
import HatoRules
import HatoTree

/// What listeners take in memory, in bytes: texts as they are, and for the rest constants that were measured with many
/// listeners of one kind. Pure.
///
/// What listeners share is counted once for the service and for each of them for its client: a topic, the authorisation
/// to read of one caller, the claims of its token.
enum ListenerCost {
    /// A listener beside its topic and its authorisation: its entries in the tables of the registry and of its topic,
    /// its subscription, and the watch of its identity.
    static let listener = 896
    /// What is listened to, beside its path and query.
    static let topic = 1_280
    /// The authorisation of a caller to a topic, beside what it rests on.
    static let authorisation = 768
    /// A node of a trie, with its share of what the tries keep in reserve.
    private static let node = 192
    /// A text that does not fit into a string value itself, beside its own bytes.
    private static let text = 48
    private static let shortTextMax = 15
    /// One thing that rules have looked at, beside its path.
    private static let read = 256
    /// A member of an object, with its name; an element of an array.
    private static let value = 64

    /// A topic.
    static func bytes(of topic: TopicKey) -> Int {
        Self.topic + bytes(of: topic.path) + (topic.query.map { bytes(of: $0) } ?? 0)
    }

    /// What an authorisation to read rests on.
    static func bytes(of reads: RulesReadSet) -> Int {
        reads.reads.reduce(0) { $0 + read + bytes(of: $1.path) }
    }

    /// The caller of a listener.
    static func bytes(of caller: Caller) -> Int {
        switch caller {
        case .user(let user): bytes(of: user.uid) + bytes(of: user.claims)
        case .variable(let members): bytes(of: members)
        case .nobody, .administrator, .service: 0
        }
    }

    private static func bytes(of path: TreePath) -> Int {
        path.keys.reduce(0) { $0 + node + bytes(of: $1.text) }
    }

    private static func bytes(of query: TreeQuery) -> Int {
        var count = [query.start, query.end].reduce(0) { count, cut in count + (cut.map { bytes(of: $0) } ?? 0) }
        if case .child(let path) = query.order { count += bytes(of: path) }
        return count
    }

    private static func bytes(of cut: TreeQuery.Cut) -> Int {
        var count = 0
        if case .leaf(.string(let text)) = cut.value { count += bytes(of: text) }
        switch cut.key {
        case .before(let key), .after(let key): count += bytes(of: key.text)
        case .beforeAll, .afterAll: break
        }
        return count
    }

    private static func bytes(of text: String) -> Int {
        text.utf8.count > shortTextMax ? Self.text + text.utf8.count : 0
    }

    private static func bytes(of object: JSONObject) -> Int {
        object.members.reduce(0) { $0 + bytes(of: $1.name) + bytes(of: $1.value) }
    }

    private static func bytes(of json: JSONValue) -> Int {
        switch json {
        case .null, .bool, .number: value
        case .string(let text): value + bytes(of: text)
        case .array(let elements): elements.reduce(value) { $0 + bytes(of: $1) }
        case .object(let members): value + bytes(of: members)
        }
    }
}

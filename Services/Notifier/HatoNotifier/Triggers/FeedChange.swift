import HatoModel

/// One change of a database as its feed tells it, for one pattern that it matches.
struct FeedChange: Sendable, Hashable {
    var pattern: String
    /// What the pattern's wildcards stand for.
    var parameters: [String: String]
    var path: String
    var type: Notifier.ChangeType
    /// Export form; null where nothing is.
    var before: JSONValue?
    var after: JSONValue?
    /// The author; nil for administrators and for nobody.
    var uid: String?
    /// `before` and `after` hold the changed children only.
    var isPartial = false
    /// `before` and `after` were cut.
    var isTruncated = false
    /// Too many nodes below `path` changed to be told one by one.
    var isMany = false
}

/// The changes of one commit.
struct FeedCommit: Sendable, Hashable {
    var version: UInt64
    var epoch: String
    /// Milliseconds since 1970.
    var time: Int64
    var changes: [FeedChange]
}

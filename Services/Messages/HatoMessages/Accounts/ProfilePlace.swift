public import HatoModel

/// Where the public profile of each account stands in the tree: the setting `profiles`, as `default:/users/{uid}`.
public struct ProfilePlace: Sendable, Hashable, CustomStringConvertible {
    /// The database.
    public let database: DatabaseName
    private let pattern: FeedPattern
    /// As it was given.
    public let description: String

    /// Throws `ArgumentError` for a text that is no name of a database, a colon and a path with `{uid}` in the place of
    /// one key.
    public init(_ text: String) throws(ArgumentError) {
        func wrong(_ problem: String) -> ArgumentError {
            ArgumentError(
                reason: "invalid_profiles", "\"\(text)\" \(problem); give DATABASE:PATH as in default:/users/{uid}")
        }
        guard let colon = text.firstIndex(of: ":") else { throw wrong("has no colon") }
        guard let database = DatabaseName(rawValue: String(text[..<colon])) else {
            throw wrong("begins with no name of a database")
        }
        let pattern: FeedPattern
        do { pattern = try FeedPattern(String(text[text.index(after: colon)...])) } catch {
            throw wrong("ends with no path: \(error.message)")
        }
        let parameters = pattern.segments.filter { if case .any = $0 { true } else { false } }
        guard parameters == [.any("uid")] else { throw wrong("has not {uid} as its only name in braces") }
        self.database = database
        self.pattern = pattern
        description = text
    }

    /// The node of an account. Throws `ArgumentError` for a uid that is no key.
    func path(of uid: String) throws(ArgumentError) -> TreePath {
        var keys: [TreeKey] = []
        for segment in pattern.segments {
            switch segment {
            case .key(let key): keys.append(key)
            case .any: keys.append(try TreeKey(uid))
            }
        }
        return try TreePath(keys: keys)
    }
}

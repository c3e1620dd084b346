/// The limits of the tree's shape (spec realtime-database §1); they apply to every database and are not settings.
public enum TreeLimits {
    /// Keys from the root to the deepest value.
    public static let depthMax = 32
    /// Bytes of one key in UTF-8.
    public static let keyBytesMax = 768
    /// Bytes of a path as text: the longest keys, escaped or not, and some empty segments. Longer texts are refused
    /// without parsing.
    public static let pathBytesMax = 32 * 1024
    /// Bytes of one string value, or of one priority, in UTF-8.
    public static let stringBytesMax = 10 * 1024 * 1024
    /// The maximum of `limitToFirst` and `limitToLast` of a query; the minimum is 1 (protocol §5).
    public static let queryLimitMax = 1_000_000
}

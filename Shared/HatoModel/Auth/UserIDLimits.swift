/// The bounds of a uid, for every service: auth makes no longer one, and the others accept each that it makes.
public enum UserIDLimits {
    /// Unicode code points.
    public static let codePointsMax = 128
    /// Bytes of UTF-8: each code point takes at most four.
    public static let bytesMax = 4 * codePointsMax
}

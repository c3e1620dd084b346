import HatoModel

/// How a user signed in, the `sign_in_provider` of ID tokens: `password`, `anonymous`, `custom`, or the id of a
/// provider of identities such as `google.com` or `oidc.work`.
struct SignInProvider: Hashable, FieldText {
    static let bytesMax = 64

    static let password = Self(known: "password")
    static let anonymous = Self(known: "anonymous")
    /// A custom token.
    static let custom = Self(known: "custom")

    let description: String

    /// Throws `ArgumentError` unless the text has 1 to 64 of a-z, 0-9, `.`, `-` and `_`, the first a letter.
    init(_ text: String) throws(ArgumentError) {
        let isValid =
            text.utf8.count <= Self.bytesMax
            && (text.utf8.first.map { Self.letters.contains($0) } ?? false)
            && text.utf8.allSatisfy { Self.letters.contains($0) || Self.others.contains($0) }
        guard isValid else {
            throw ArgumentError(
                reason: "invalid_provider",
                "a provider has 1 to \(Self.bytesMax) of a-z, 0-9, '.', '-' and '_', the first a letter")
        }
        description = text
    }

    private init(known text: String) { description = text }

    private static let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    private static let others = Set("0123456789.-_".utf8)
}

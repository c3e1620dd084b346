import HatoModel

/// One sign-in and its chain of refresh tokens (a token family, RFC 9700 §4.14). Holds hashes, never tokens.
struct SessionRecord: Sendable {
    static let idBytes = 16

    var id: [UInt8]
    var uid: String
    var provider: SignInProvider
    /// The time in seconds when the user presented a credential; refreshing does not change it.
    var authTime: Int64
    var rotation: RefreshRotationStateMachine
    /// The claims of the custom token that began it.
    var claims: JSONObject?
    /// The name of the device, as its client gave it.
    var label: String?
    /// The network of the last sign-in or refresh.
    var address: String?
    /// The id of the session from which it was forked, or from which that one was; nil: of none.
    var forkedFrom: [UInt8]?

    /// The same for all sessions of one sign-in: a stolen token ends all of them.
    var family: [UInt8] { forkedFrom ?? id }
}

extension SessionRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(
            id: [], uid: "", provider: .password, authTime: 0,
            rotation: RefreshRotationStateMachine.fields.blank),
        .required("uid", \.uid),
        .required("provider", \.provider),
        .seconds("authTime", \.authTime),
        .optional("claims", \.claims),
        .optional("label", \.label),
        .optional("address", \.address),
        .optionalBytes("forkedFrom", \.forkedFrom, count: idBytes)
    ).inlining(\.rotation)

    /// Throws `RecordError`.
    init(_ id: [UInt8], _ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "session", unknown: .rejected)
        self.id = id
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

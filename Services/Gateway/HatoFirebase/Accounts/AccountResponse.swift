import HatoModel

/// The HTTP response of an account operation, without the headers of CORS, which every response gets.
public struct AccountResponse: Sendable, Hashable, SecretHolder {
    /// What the gateway remembers or forgets besides, in emulator mode.
    public enum Effect: Sendable, Hashable {
        /// Keep this code for `oobCodes`.
        case remember(OobCodeLog.Entry)
        /// Drop all kept codes.
        case forgetCodes
    }

    /// The status code.
    public var status: Int
    /// The header `Content-Type`.
    public var contentType: String
    /// The header `Retry-After`, in seconds.
    public var retryAfterSeconds: Int?
    /// The header `Cache-Control`; `no-store` where tokens or accounts are in the body.
    public var cacheControl = "no-store"
    /// The header `Location` of a redirection.
    public var location: String?
    /// The header `Content-Security-Policy` of a page.
    public var contentSecurityPolicy: String?
    /// The body.
    public var body: [UInt8]
    /// What the gateway does besides.
    public var effect: Effect?

    init(status: Int, contentType: String, body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// 200 with a JSON body; members that are nil are left out.
    init(_ members: JSONObject, effect: Effect? = nil) {
        self.init(status: 200, contentType: Self.json, body: JSONValue.object(members).encoded)
        self.effect = effect
    }

    /// 303: the browser loads `location` with GET. Bytes that a header may not have become percent codes.
    static func redirection(to location: String) -> AccountResponse {
        var response = AccountResponse(status: 303, contentType: text, body: [])
        response.location = location.unicodeScalars.map { scalar in
            (0x21...0x7E).contains(scalar.value) ? String(scalar) : AccountPercentCoding.encoded(String(scalar))
        }.joined()
        return response
    }

    /// 503 with a text: the service does not respond. No SDK signs its user out.
    ///
    /// - Parameter retryAfterSeconds: when clients may try again; 5 seconds when nil.
    public static func outage(retryAfterSeconds: Int? = nil) -> AccountResponse {
        AuthFault.outage(retryAfterSeconds: retryAfterSeconds).response
    }

    static let json = "application/json; charset=utf-8"
    static let text = "text/plain; charset=utf-8"
    static let html = "text/html; charset=utf-8"

    public var description: String { "AccountResponse(\(status), \(body.count) bytes)" }
}

extension JSONObject {
    /// Members in their order; those without a value are left out.
    init(present members: KeyValuePairs<String, JSONValue?>) {
        self.init(uniqueMembers: members.compactMap { name, value in value.map { Member(name, $0) } })
    }
}

extension JSONValue {
    /// The text as a value; nil without one.
    static func text(_ text: String?) -> JSONValue? {
        guard let text else { return Optional.none }
        return .string(text)
    }

    /// The flag as a value; nil without one.
    static func flag(_ flag: Bool?) -> JSONValue? {
        guard let flag else { return Optional.none }
        return .bool(flag)
    }

    /// The integer as a text, as Firebase writes int64; nil without one.
    static func int64(_ integer: Int64?) -> JSONValue? {
        guard let integer else { return Optional.none }
        return .string(String(integer))
    }
}

import HatoModel

/// The token endpoint of securetoken: a refresh token for an ID token (spec auth §3).
///
/// SDKs sign their user out at every error with an envelope, so there are no others than Firebase's.
struct TokenExchange: Sendable, SecretHolder {
    private let refreshToken: String

    /// Reads a form or JSON, with names in snake or camel case. Throws `AuthFault`.
    init(_ request: AccountRequest, _ limits: AccountLimits) throws(AuthFault) {
        let (grantType, refreshToken) = Self.read(request, limits)
        guard let grantType, grantType != .string("") else { throw AuthFault("MISSING_GRANT_TYPE") }
        guard grantType == .string("refresh_token") else { throw AuthFault("INVALID_GRANT_TYPE") }
        guard let refreshToken, refreshToken != .string("") else { throw AuthFault("MISSING_REFRESH_TOKEN") }
        guard let text = refreshToken.string, text.utf8.count <= limits.tokenBytesMax else {
            throw AuthFault("INVALID_REFRESH_TOKEN")
        }
        self.refreshToken = text
    }

    private static func read(
        _ request: AccountRequest, _ limits: AccountLimits
    ) -> (grantType: JSONValue?, refreshToken: JSONValue?) {
        let bytes = request.body
        guard !request.isBodyTooLong, bytes.count <= limits.bodyBytesMax else { return (nil, nil) }
        let type = request.contentType?.lowercased() ?? ""
        let first = bytes.first { $0 > UInt8(ascii: " ") }
        // What calls itself a form is one; else the first character says it.
        if !type.contains("form-urlencoded"), type.contains("json") || first == UInt8(ascii: "{") {
            var scanner = JSONScanner(memoryMax: limits.memoryMax(ofBody: limits.bodyBytesMax))
            guard let object = (try? scanner.value(bytes.span))?.object, (try? scanner.end(bytes.span)) != nil else {
                return (nil, nil)
            }
            return (
                object["grantType"]?.present ?? object["grant_type"]?.present,
                object["refreshToken"]?.present ?? object["refresh_token"]?.present
            )
        }
        let form = AccountParameters(bytes)
        return (
            (form["grant_type"] ?? form["grantType"]).map { .string($0) },
            (form["refresh_token"] ?? form["refreshToken"]).map { .string($0) }
        )
    }

    var description: String { "TokenExchange" }

    /// The one call, and its response.
    func work(projectNumber: String) -> any AccountWork {
        OneCall(Auth.Refresh(refreshToken: refreshToken)) { (session) throws(AuthFault) in
            AccountResponse(Self.members(session, projectNumber: projectNumber))
        }
    }

    /// In snake case, whatever the request was.
    private static func members(_ session: Auth.Session, projectNumber: String) -> JSONObject {
        JSONObject(present: [
            "access_token": .string(session.idToken), "expires_in": .string(String(session.expiresIn)),
            "token_type": "Bearer", "refresh_token": .string(session.refreshToken),
            "id_token": .string(session.idToken), "user_id": .string(session.uid),
            "project_id": .string(projectNumber),
        ])
    }
}

extension JSONValue {
    /// Nil for null.
    fileprivate var present: JSONValue? { isNull ? Optional.none : self }
}

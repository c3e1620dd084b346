import HatoModel

/// Why an account operation is refused, in Firebase's words. The texts are constants, names of fields, or of the list
/// of `AuthErrors`; never a value that the client sent as a credential.
struct AuthFault: Error, Sendable, Hashable {
    /// The forms of a refusal.
    enum Kind: Sendable, Hashable {
        /// An error with a code of Firebase: HTTP 400 without `status`.
        case business
        /// An error of the request itself, with `status`.
        case request(status: Int, canonical: String)
        /// The service is away: 503, a text. SDKs take what is no JSON for a network error and keep their user.
        case outage
        /// Whether the service has done what was asked is not known: 504, a text. SDKs keep their user, and those for
        /// servers do not repeat it, as they do 500 and 503.
        case unknownOutcome
    }

    var kind: Kind
    /// The first token of the message, or the whole message.
    var code: String
    /// Behind ` : `: what SDKs show to users.
    var detail: String?
    /// `errors[].reason`.
    var reason = "invalid"
    var retryAfterSeconds: Int?

    /// An error with a code of Firebase.
    init(_ code: String, _ detail: String? = nil) {
        kind = .business
        self.code = code
        self.detail = detail
    }

    private init(_ status: Int, _ canonical: String, _ message: String, reason: String) {
        kind = .request(status: status, canonical: canonical)
        code = message
        self.reason = reason
    }

    /// Of a body that cannot be read, or has a member of another type.
    static func invalid(_ text: String) -> AuthFault {
        AuthFault(400, "INVALID_ARGUMENT", "Invalid JSON payload received. \(text)", reason: "invalid")
    }

    static func invalidArgument(_ message: String) -> AuthFault {
        AuthFault(400, "INVALID_ARGUMENT", message, reason: "badRequest")
    }

    /// 501 with the name of what does not exist here.
    static func unimplemented(_ name: String) -> AuthFault {
        AuthFault(501, "NOT_IMPLEMENTED", "\(name) is not implemented", reason: "unimplemented")
    }

    static let missingAPIKey = AuthFault(
        403, "PERMISSION_DENIED", "The request is missing a valid API key.", reason: "forbidden")
    static let wrongAPIKey = AuthFault(
        400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason: "badRequest")
    static let missingAdministrator = AuthFault(
        401, "UNAUTHENTICATED",
        "Request is missing required authentication credential. Expected an administrator key as bearer token.",
        reason: "required")
    static let wrongAdministrator = AuthFault(
        401, "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected an administrator key as bearer token.",
        reason: "authError")
    static let notAllowed = AuthFault(
        403, "PERMISSION_DENIED", "The caller does not have permission", reason: "forbidden")
    static let noCertificates = AuthFault(
        404, "NOT_FOUND", "Tokens are signed with ES256: their keys are at /.well-known/jwks.json", reason: "notFound")
    static let notFound = AuthFault(404, "NOT_FOUND", "Not Found", reason: "notFound")

    /// The service does not respond, or is not able to. The usual time is that of a restart.
    static func outage(retryAfterSeconds: Int? = nil) -> AuthFault {
        var fault = AuthFault("")
        fault.kind = .outage
        fault.retryAfterSeconds = max(1, retryAfterSeconds ?? 5)
        return fault
    }

    static let unknownOutcome: AuthFault = {
        var fault = AuthFault("")
        fault.kind = .unknownOutcome
        return fault
    }()

    /// `CODE`, or `CODE : detail`.
    var message: String { detail.map { "\(code) : \($0)" } ?? code }

    /// The response: the error envelope (spec auth §1), or a text.
    var response: AccountResponse {
        var response: AccountResponse
        switch kind {
        case .outage:
            response = Self.text(503, "The service is not available now. Please try again later.\n")
        case .unknownOutcome:
            response = Self.text(504, "Whether this was done is not known. Please look before you try again.\n")
        case .business: response = envelope(400, nil)
        case .request(let status, let canonical): response = envelope(status, canonical)
        }
        response.retryAfterSeconds = retryAfterSeconds
        return response
    }

    private static func text(_ status: Int, _ text: String) -> AccountResponse {
        AccountResponse(status: status, contentType: AccountResponse.text, body: Array(text.utf8))
    }

    private func envelope(_ status: Int, _ canonical: String?) -> AccountResponse {
        var entry = JSONObject(present: [
            "message": .string(message), "domain": "global", "reason": .string(reason),
        ])
        if status == 401 {
            entry["location"] = "Authorization"
            entry["locationType"] = "header"
        }
        let error = JSONObject(present: [
            "code": .number(Double(status)), "message": .string(message), "errors": .array([.object(entry)]),
            "status": .text(canonical),
        ])
        return AccountResponse(
            status: status, contentType: AccountResponse.json, body: JSONValue.object(["error": .object(error)]).encoded
        )
    }
}

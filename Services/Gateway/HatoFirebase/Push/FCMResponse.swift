import HatoModel

/// Responses of FCM HTTP v1, with Google's form of errors. SDKs decide by `errorCode` of the details, then by `status`.
enum FCMResponse {
    private struct Failure {
        var status: Int
        var name: String
        var message: String
        var errorCode: String?
        /// The member that is wrong.
        var field: String?
        var retryAfterSeconds: Int?
    }

    // MARK: Results

    static func success(_ result: JSONObject, of call: PushRequest.Call, _ project: String) -> RESTAnswer {
        let id: String
        if call.method == Notifier.Send.method {
            let isGone = result["recipients"]?.integer == 0 && result["fanOut"]?.bool != true
            if isGone, call.params["to"]?["tokens"] != nil { return response(unregistered) }
            id = result["notification"]?.string ?? dryRunID
        } else {
            let outcome = result["results"]?.array?.first
            if let error = outcome?["error"] { return response(failure(ofToken: error)) }
            id = call.isDryRun ? dryRunID : outcome?["messageId"]?.string ?? ""
        }
        return RESTAnswer(
            status: 200, body: JSONValue.object(["name": .string("projects/\(project)/messages/\(id)")]).encoded)
    }

    /// FCM's own.
    private static let dryRunID = "fake_message_id"

    private static let unregistered = Failure(
        status: 404, name: "NOT_FOUND", message: "Requested entity was not found.", errorCode: "UNREGISTERED")
    /// Without a violation of a field, which says that the sender is wrong and the token may be right.
    private static let invalidToken = Failure(
        status: 400, name: "INVALID_ARGUMENT",
        message: "The registration token is not a valid FCM registration token", errorCode: "INVALID_ARGUMENT")

    /// Google's errors of this kind have both details.
    private static func wrong(_ field: String, _ message: String) -> Failure {
        Failure(
            status: 400, name: "INVALID_ARGUMENT", message: message, errorCode: "INVALID_ARGUMENT", field: field)
    }

    /// An error of `notifier.sendToDevice` for a token.
    private static func failure(ofToken error: JSONValue) -> Failure {
        let message = error["message"]?.string ?? ""
        return switch error["code"]?.string {
        case "messaging/registration-token-not-registered": unregistered
        case "messaging/invalid-registration-token": invalidToken
        case "messaging/mismatched-credential":
            Failure(
                status: 403, name: "PERMISSION_DENIED", message: "SenderId mismatch", errorCode: "SENDER_ID_MISMATCH")
        case "messaging/invalid-argument", "messaging/payload-size-limit-exceeded": wrong("message", message)
        default: unavailable(1)
        }
    }

    // MARK: Errors

    static func failure(_ error: RPCError) -> RESTAnswer { response(failure(of: error)) }

    private static func failure(of error: RPCError) -> Failure {
        let seconds = RetryAfter.seconds(error)
        switch error.code {
        case .unauthenticated: return noCredential
        case .permissionDenied: return Failure(status: 403, name: "PERMISSION_DENIED", message: error.message)
        // With 404, SDKs take the token for one that is gone.
        case .notFound: return wrong("message", error.message)
        case .failedPrecondition: return Failure(status: 400, name: "FAILED_PRECONDITION", message: error.message)
        case .invalidArgument where error.reason == "invalid_token": return invalidToken
        case .invalidArgument, .invalidParams, .invalidRequest:
            return FCMFields.wrong(error).map { wrong($0.field, $0.words) } ?? wrong("message", error.message)
        // SDKs take 429 for a limit of the device or the project, and do not repeat it: nothing was sent.
        case .resourceExhausted where overloads.contains(error.reason ?? ""): return unavailable(seconds)
        case .resourceExhausted:
            return Failure(
                status: 429, name: "RESOURCE_EXHAUSTED", message: error.message, errorCode: "QUOTA_EXCEEDED",
                retryAfterSeconds: seconds)
        // SDKs repeat 500 and 503, which could send twice.
        case .unavailable where !error.isRetryable || error.reason == "connection_lost":
            return Failure(
                status: 504, name: "DEADLINE_EXCEEDED", message: "The outcome of the request is not known.")
        case .unavailable: return unavailable(seconds)
        case .methodNotFound: return Failure(status: 501, name: "UNIMPLEMENTED", message: "Not implemented.")
        default:
            return Failure(status: 500, name: "INTERNAL", message: "Internal error.", errorCode: "INTERNAL")
        }
    }

    /// Reasons of the gateway and of services that hold too much.
    private static let overloads: Set<String> = [
        "busy", "too_many_fan_outs", "too_many_connections", "too_many_connections_from_address",
        "too_many_forwarding_connections",
    ]

    private static func unavailable(_ seconds: Int?) -> Failure {
        Failure(
            status: 503, name: "UNAVAILABLE", message: "The service is currently unavailable.",
            errorCode: "UNAVAILABLE", retryAfterSeconds: seconds ?? 1)
    }

    private static let noCredential = Failure(
        status: 401, name: "UNAUTHENTICATED",
        message: "Request had invalid authentication credentials: Bearer with the administrator key is needed.")

    static func refusal(_ fault: PushFault) -> RESTAnswer {
        let failure =
            switch fault {
            case .method, .noCredential: noCredential
            case .tooLarge: wrong("message", "Request payload is too large.")
            case .busy: self.failure(of: fault.rpcError)
            case .noJSON(let words): wrong("message", "Invalid JSON payload received. \(words)")
            case .wrong(let path, let words): wrong(path, words)
            case .unknown(let name, in: let path): wrong(path, FCMFields.unknown(name, in: path))
            case .refused(let name, tokens: _): wrong("message", name)
            case .unsupported(let path, let words):
                Failure(status: 501, name: "UNIMPLEMENTED", message: words, field: path)
            }
        return response(failure)
    }

    private static func response(_ failure: Failure) -> RESTAnswer {
        var details: [JSONValue] = []
        if let code = failure.errorCode {
            details.append([
                "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code),
            ])
        }
        if let field = failure.field {
            details.append([
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [["field": .string(field), "description": .string(failure.message)]],
            ])
        }
        var error: JSONObject = [
            "code": .number(Double(failure.status)), "message": .string(failure.message),
            "status": .string(failure.name),
        ]
        if !details.isEmpty { error["details"] = .array(details) }
        return RESTAnswer(
            status: failure.status, headers: RetryAfter.header(failure.retryAfterSeconds),
            body: JSONValue.object(["error": .object(error)]).encoded)
    }
}

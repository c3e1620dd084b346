import HatoModel

/// Responses of FCM's old HTTP interface.
enum LegacyFCMResponse {
    static func success(_ result: JSONObject) -> RESTAnswer {
        guard let results = result["results"]?.array else {
            // Of a topic; the old ids were numbers.
            let id = messageNumber(result["notification"]?.string ?? "")
            return json(200, ["message_id": .number(Double(id))])
        }
        let outcomes = results.map { outcome -> JSONValue in
            if let code = outcome["error"]?["code"]?.string { return ["error": .string(errorName(code))] }
            return ["message_id": outcome["messageId"] ?? ""]
        }
        return json(
            200,
            [
                "multicast_id": result["multicastId"] ?? 0, "success": result["successCount"] ?? 0,
                "failure": result["failureCount"] ?? 0, "canonical_ids": 0, "results": .array(outcomes),
            ])
    }

    private static func messageNumber(_ id: String) -> UInt64 {
        // The same for the same notification (FNV-1a), exact in a double.
        id.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 } >> 12
    }

    private static func errorName(_ code: String) -> String {
        switch code {
        case "messaging/registration-token-not-registered": "NotRegistered"
        case "messaging/invalid-registration-token": "InvalidRegistration"
        case "messaging/mismatched-credential": "MismatchSenderId"
        case "messaging/invalid-argument": "InvalidParameters"
        case "messaging/payload-size-limit-exceeded": "MessageTooBig"
        default: "Unavailable"
        }
    }

    /// - Parameter call: the call that has failed.
    static func failure(_ error: RPCError, of call: PushRequest.Call) -> RESTAnswer {
        guard let name = error.reason.flatMap({ namesByReason[$0] }), isOfSender(error.code) else {
            return failure(error)
        }
        return refused(name, tokens: call.tokenCount)
    }

    private static func failure(_ error: RPCError) -> RESTAnswer {
        switch error.code {
        case .unauthenticated, .permissionDenied: return unauthorized
        case .unavailable where !error.isRetryable || error.reason == "connection_lost":
            return json(504, ["error": "InternalServerError"])
        case .unavailable, .resourceExhausted:
            let seconds = RetryAfter.seconds(error) ?? 1
            return json(503, ["error": "Unavailable"], RetryAfter.header(seconds))
        case let code where isOfSender(code):
            return json(400, ["error": .string("InvalidParameters: \(error.message)")])
        default: return json(500, ["error": "InternalServerError"])
        }
    }

    /// Whether the request is wrong.
    private static func isOfSender(_ code: RPCError.Code) -> Bool {
        switch code {
        case .invalidArgument, .invalidParams, .invalidRequest, .failedPrecondition, .notFound: true
        default: false
        }
    }

    static func refusal(_ fault: PushFault) -> RESTAnswer {
        switch fault {
        case .method, .noCredential: unauthorized
        // Which tokens it names is not known, and so not how many results there are.
        case .tooLarge: json(400, ["error": "MessageTooBig"])
        case .busy: failure(fault.rpcError)
        case .noJSON(let words):
            RESTAnswer(
                status: 400, contentType: "text/plain; charset=utf-8",
                body: Array("JSON_PARSING_ERROR: \(words)\n".utf8))
        case .refused(let name, tokens: let count): refused(name, tokens: count)
        case .wrong(_, let words), .unsupported(_, let words): json(400, ["error": .string(words)])
        case .unknown(let name, in: _): json(400, ["error": .string("InvalidParameters: \(name)")])
        }
    }

    /// Names that stand among the results, with 200: libraries take what has another status for a failure of their own.
    private static let namesByReason = [
        "too_big": "MessageTooBig", "invalid_ttl": "InvalidTtl", "invalid_data": "InvalidDataKey",
    ]

    /// Each token has a result, in the order of the request: libraries read them side by side. A topic has none.
    private static func refused(_ name: String, tokens count: Int?) -> RESTAnswer {
        let error: JSONObject = ["error": .string(name)]
        guard let count else { return json(200, error) }
        return json(
            200,
            [
                "multicast_id": 0, "success": 0, "failure": .number(Double(count)), "canonical_ids": 0,
                "results": .array(Array(repeating: .object(error), count: count)),
            ])
    }

    private static let unauthorized = RESTAnswer(
        status: 401, contentType: "text/plain; charset=utf-8",
        body: Array("Authorization: key= or Bearer with the administrator key is needed.\n".utf8))

    private static func json(
        _ status: Int, _ object: JSONObject, _ headers: [RESTAnswer.Header] = []
    ) -> RESTAnswer {
        RESTAnswer(status: status, headers: headers, body: JSONValue.object(object).encoded)
    }
}

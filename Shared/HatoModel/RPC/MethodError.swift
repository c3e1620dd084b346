/// Errors of one code that a method may return: declared with the method, for its documents.
public struct MethodError: Sendable, Hashable {
    /// The number of the error.
    public var code: RPCError.Code
    /// The values of `data.reason`.
    public var reasons: [String]
    /// Further members of `data` that an error with one of these reasons has.
    public var data: [String]

    public init(_ code: RPCError.Code, _ reasons: String..., data: [String] = []) {
        self.code = code
        self.reasons = reasons
        self.data = data
    }

    /// The errors of every method.
    public static let general = [
        MethodError(
            .invalidParams, "invalid_params", "missing_parameter", "unknown_parameter", "positional_params",
            "credential_too_long"),
        MethodError(.unauthenticated, "missing_credential", "INVALID_ID_TOKEN", "TOKEN_EXPIRED"),
        MethodError(.permissionDenied, "permission_denied"),
        MethodError(.resourceExhausted, "too_big"),
        MethodError(.resourceExhausted, "busy", data: ["retryAfterMs"]),
        MethodError(
            .unavailable, "stopping", "store_closed", "outcome_unknown", "key_not_fetched", "auth_unavailable"),
        MethodError(.invalidArgument, "invalid_address"),
        MethodError(.internalError, "internal"),
    ]
}

extension [MethodError] {
    static func joined(_ parts: [MethodError]...) -> [MethodError] { Array(parts.joined()) }

    /// The reasons of each code, in the order of the first declaration of the code.
    var byCode: [(code: RPCError.Code, reasons: [String])] {
        var all: [(code: RPCError.Code, reasons: [String])] = []
        for error in self {
            let index = all.firstIndex { $0.code == error.code } ?? all.endIndex
            if index == all.endIndex { all.append((error.code, [])) }
            all[index].reasons += error.reasons.filter { !all[index].reasons.contains($0) }
        }
        return all
    }
}

extension RPCRequest {
    /// Whether `error` is among the declared errors of the method or those of every method. The reason of a wrong query
    /// may also be a message of Firebase.
    public static func declares(_ error: RPCError) -> Bool {
        if error.data["parameter"] == "query", error.reason?.contains(" ") == true { return true }
        return (errors + MethodError.general).contains { declared in
            declared.code == error.code && declared.reasons.contains { $0 == error.reason }
        }
    }
}

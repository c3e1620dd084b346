extension RPCRequest {
    public static func decode(_ params: JSONObject) throws(RPCError) -> Self { try decodeFields(params) }

    /// Decodes the request with its table of fields; for methods with additional checks.
    static func decodeFields(_ params: JSONObject) throws(RPCError) -> Self {
        do { return try Self(json: .object(params), unknown: .rejected) } catch { throw error.rpcError }
    }

    /// Reads a result from a server; members without a field are ignored. Throws `FieldError`.
    public static func decodeResult(_ value: JSONValue) throws(FieldError) -> Result {
        try Result(json: value, unknown: .ignored)
    }
}

extension RPCNotification {
    /// Reads the params of a notification from a server; members without a field are ignored. Throws `FieldError`.
    public static func decode(_ params: JSONObject) throws(FieldError) -> Self {
        try Self(json: .object(params), unknown: .ignored)
    }
}

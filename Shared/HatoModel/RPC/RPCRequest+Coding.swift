extension RPCRequest {
    public static func decode(_ params: JSONObject) throws(RPCError) -> Self { try decodeFields(params) }

    /// Makes the request by its table of fields; for methods that check more before or after it.
    static func decodeFields(_ params: JSONObject) throws(RPCError) -> Self {
        do { return try Self(json: .object(params), unknown: .rejected) } catch { throw error.rpcError }
    }

    /// Reads a result that a server sent; members that no field has are ignored. Throws `FieldError`.
    public static func decodeResult(_ value: JSONValue) throws(FieldError) -> Result {
        try Result(json: value, unknown: .ignored)
    }
}

extension RPCNotification {
    /// Reads the params of a notification that a server sent; members that no field has are ignored. Throws
    /// `FieldError`.
    public static func decode(_ params: JSONObject) throws(FieldError) -> Self {
        try Self(json: .object(params), unknown: .ignored)
    }
}

extension RPCRequest {
    /// By `Codable`. A hot method writes its own; it must refuse the same.
    public static func decode(_ params: JSONObject) throws -> Self {
        try JSONCoding.decode(Self.self, from: params)
    }

    public static func encode(_ result: Result, into writer: inout JSONWriter) throws {
        writer.write(try JSONCoding.encode(result))
    }

    /// The params of this request, for the one who sends it.
    public func encodedParams() throws -> JSONObject {
        try JSONCoding.encode(self).object ?? [:]
    }

    /// Reads a result that a server sent; members we do not know are passed over.
    public static func decodeResult(_ value: JSONValue) throws -> Result {
        try JSONCoding.decode(Result.self, from: value, unknown: .ignored)
    }
}

extension RPCNotification {
    public static func decode(_ params: JSONObject) throws -> Self {
        try JSONCoding.decode(Self.self, from: .object(params), unknown: .ignored)
    }

    public func encodedParams() throws -> JSONObject {
        try JSONCoding.encode(self).object ?? [:]
    }
}

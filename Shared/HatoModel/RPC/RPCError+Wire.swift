extension RPCError {
    /// The error object of a response: `{"code","message","data"}`.
    public func write(into writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("code")
        writer.write(code.rawValue)
        writer.member("message")
        writer.write(message)
        if !data.isEmpty {
            writer.member("data")
            writer.write(data)
        }
        writer.endObject()
    }

    public var json: JSONValue {
        var object: JSONObject = ["code": .number(Double(code.rawValue)), "message": .string(message)]
        if !data.isEmpty { object["data"] = .object(data) }
        return .object(object)
    }

    /// Reads the error object of a response from any JSON-RPC peer: nil when it has no integral code. Data that is no
    /// object is in `data.value`.
    public init?(json: JSONValue) {
        guard let code = json["code"]?.integer else { return nil }
        let data: JSONObject =
            switch json["data"] {
            case .object(let object)?: object
            case nil, .null?: [:]
            case let other?: ["value": other]
            }
        self.init(received: Code(rawValue: Int(code)), message: json["message"]?.string ?? "", data: data)
    }
}

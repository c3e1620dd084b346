/// A parameter, or a member of a result, for the documents.
struct FieldDescription {
    var name: String
    var schema: JSONObject
    var isRequired: Bool
    var meaning: String
    /// A valid value, where the example of the method omits the member.
    var example: JSONValue?

    /// The members of an object with this schema; empty for anything else.
    static func members(of schema: JSONObject) -> [FieldDescription] {
        let required = schema["required"]?.array ?? []
        return (schema["properties"]?.object?.members ?? []).map { member in
            var schema = member.value.object ?? [:]
            let meaning = schema["description"]?.string ?? ""
            schema["description"] = nil
            return FieldDescription(
                name: member.name, schema: schema, isRequired: required.contains(.string(member.name)),
                meaning: meaning, example: schema["examples"]?.array?.first)
        }
    }
}

/// Everything in the documents about one method, without its types.
struct MethodDescription {
    var name: String
    var summary: String
    var access: Access
    var effect: Effect
    var isSlow: Bool
    var errors: [MethodError]
    var parameters: [FieldDescription]
    var result: JSONObject
    var exampleParams: JSONObject
    var exampleResult: JSONValue

    init<Request: RPCRequest>(_ request: Request.Type) {
        name = request.method
        summary = request.summary
        access = request.access
        effect = request.effect
        isSlow = request.isSlow
        errors = request.errors
        parameters = FieldDescription.members(of: Request.schema)
        result = Request.Result.schema
        exampleParams = request.example.request.members
        exampleResult = request.example.result.json
    }
}

/// Everything in the documents about a notification of a server.
struct NotificationDescription {
    var name: String
    var summary: String
    var parameters: [FieldDescription]
    var example: JSONObject

    init<Notification: RPCNotification>(_ notification: Notification.Type) {
        name = notification.method
        summary = notification.summary
        parameters = FieldDescription.members(of: Notification.schema)
        example = notification.example.members
    }
}

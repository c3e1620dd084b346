/// Everything the documents say about one method, its types forgotten.
struct MethodDescription {
    struct Parameter {
        var name: String
        var schema: JSONObject
        var isRequired: Bool
        var note: String?
    }

    var name: String
    var summary: String
    var access: Access
    var effect: Effect
    var isSlow: Bool
    var parameters: [Parameter]
    var result: JSONObject
    var exampleParams: JSONObject
    var exampleResult: JSONValue
    var notes: [String: String]

    init<Request: RPCRequest>(_ request: Request.Type) {
        let example = request.example
        let params = (try? example.request.encodedParams()) ?? [:]
        let result = (try? JSONCoding.encode(example.result)) ?? .null
        name = request.method
        summary = request.summary
        access = request.access
        effect = request.effect
        isSlow = request.isSlow
        notes = request.parameterNotes
        parameters = Self.parameters(JSONSchema.of(request, sample: .object(params)), notes: request.parameterNotes)
        self.result = JSONSchema.of(Request.Result.self, sample: result)
        exampleParams = params
        exampleResult = result
    }

    static func parameters(_ schema: JSONObject, notes: [String: String] = [:]) -> [Parameter] {
        let required = schema["required"]?.array ?? []
        return (schema["properties"]?.object?.members ?? []).map { member in
            Parameter(
                name: member.name, schema: member.value.object ?? [:],
                isRequired: required.contains(.string(member.name)),
                note: notes[member.name])
        }
    }
}

/// The same for a notification that a server sends.
struct NotificationDescription {
    var name: String
    var summary: String
    var parameters: [MethodDescription.Parameter]
    var example: JSONObject

    init<Notification: RPCNotification>(_ notification: Notification.Type) {
        example = (try? notification.example.encodedParams()) ?? [:]
        name = notification.method
        summary = notification.summary
        parameters = MethodDescription.parameters(JSONSchema.of(notification, sample: .object(example)))
    }
}

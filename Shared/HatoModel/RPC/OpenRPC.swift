/// Generates the OpenRPC 1.3 document of a service from its declared methods: the result of `rpc.discover`.
///
/// Access, effect and slowness of a method are in `x-access`, `x-effect`, `x-slow`; the notifications of the server in
/// `x-notifications`, since OpenRPC has no member for them. The errors of a method, besides those of every method in
/// `components.errors`, are in `errors`: one for each code, as the specification requires, with the reasons in `data`.
public enum OpenRPC {
    /// The document as a JSON object.
    public static func document(
        title: String, version: String, methods: [any RPCRequest.Type], notifications: [any RPCNotification.Type] = []
    ) -> JSONObject {
        var document: JSONObject = [
            "openrpc": "1.3.2",
            "info": ["title": .string(title), "version": .string(version), "license": ["name": "Apache-2.0"]],
            "methods": .array(methods.map { method(MethodDescription($0)) }),
            "components": [
                "errors": .object(
                    JSONObject(
                        uniqueMembers: MethodError.general.byCode.map {
                            JSONObject.Member($0.code.name, error($0.code, $0.reasons))
                        }))
            ],
        ]
        if !notifications.isEmpty {
            document["x-notifications"] = .array(notifications.map { notification(NotificationDescription($0)) })
        }
        return document
    }

    /// Parameters that every call may carry besides its own (protocol §2).
    private static let auth: JSONValue = [
        "name": "auth", "summary": "An ID token, or the administrator key", "required": false,
        "schema": ["type": "string"],
    ]
    private static let speaksAs: JSONValue = [
        "name": "as",
        "summary":
            "With the administrator key: the user for whom the call is made; null: no user; variable: auth of the rules",
        "required": false,
        "schema": [
            "type": ["object", "null"],
            "properties": [
                "uid": ["type": "string"], "token": ["type": "object"], "variable": ["type": "object"],
            ],
        ],
    ]

    private static let from: JSONValue = [
        "name": "from", "summary": "After session.forward: the IP address of the client whose call it is",
        "required": false, "schema": ["type": "string"],
    ]

    private static func method(_ method: MethodDescription) -> JSONValue {
        var params = method.parameters.map(descriptor)
        let names = method.parameters.map(\.name)
        // Inline: common readers of OpenRPC resolve no references here.
        for (name, descriptor) in [("auth", auth), ("as", speaksAs), ("from", from)] where !names.contains(name) {
            // It speaks for no user.
            if name == "as", method.name == Session.Forward.method { continue }
            params.append(descriptor)
        }
        var description: JSONObject = [
            "name": .string(method.name),
            "summary": .string(method.summary),
            "paramStructure": "by-name",
            "params": .array(params),
            "result": ["name": "result", "schema": .object(method.result)],
            "examples": [
                [
                    "name": "example",
                    "params": .array(
                        method.exampleParams.members.map { ["name": .string($0.name), "value": $0.value] }),
                    "result": ["name": "result", "value": method.exampleResult],
                ]
            ],
            "x-access": .string(method.access.rawValue),
            "x-effect": .string(method.effect.rawValue),
            "x-slow": .bool(method.isSlow),
        ]
        if !method.errors.isEmpty {
            description["errors"] = .array(method.errors.byCode.map { error($0.code, $0.reasons) })
        }
        return .object(description)
    }

    private static func error(_ code: RPCError.Code, _ reasons: [String]) -> JSONValue {
        [
            "code": .number(Double(code.rawValue)), "message": .string(code.name),
            "data": ["reasons": .array(reasons.map { .string($0) })],
        ]
    }

    private static func notification(_ notification: NotificationDescription) -> JSONValue {
        [
            "name": .string(notification.name),
            "summary": .string(notification.summary),
            "params": .array(notification.parameters.map(descriptor)),
            "example": .object(notification.example),
        ]
    }

    private static func descriptor(_ parameter: FieldDescription) -> JSONValue {
        var descriptor: JSONObject = ["name": .string(parameter.name)]
        if !parameter.meaning.isEmpty { descriptor["summary"] = .string(parameter.meaning) }
        descriptor["required"] = .bool(parameter.isRequired)
        descriptor["schema"] = .object(parameter.schema)
        return .object(descriptor)
    }
}

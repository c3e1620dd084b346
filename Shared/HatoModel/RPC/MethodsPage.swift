/// Generates a service's METHODS.md from its declared methods.
public enum MethodsPage {
    /// The page as Markdown: a section for each method and notification, with their fields and an example.
    public static func markdown(
        title: String, methods: [any RPCRequest.Type], notifications: [any RPCNotification.Type] = []
    ) -> String {
        var page = "# \(title)\n\n"
        page +=
            "Made from the declared methods; do not edit. Every call may also carry `auth` and, for administrators, `as`.\n"
        for type in methods { page += section(MethodDescription(type)) }
        if !notifications.isEmpty {
            page += "\n# What the server sends\n"
            for type in notifications { page += section(NotificationDescription(type)) }
        }
        return page
    }

    private static func section(_ method: MethodDescription) -> String {
        let slow = method.isSlow ? " · slow: responses of later requests may come first" : ""
        var text = "\n## \(method.name)\n\n\(method.summary).\n\n"
        text += "Access: \(title(method.access)) · Effect: \(method.effect.rawValue)\(slow)\n\n"
        text += table("Parameter", rows(method.parameters))
        text += table("Result", rows(FieldDescription.members(of: method.result)))
        text += "```\n"
        text += line(
            "→", ["jsonrpc": "2.0", "id": 1, "method": .string(method.name)], "params", .object(method.exampleParams))
        text += line("←", ["jsonrpc": "2.0", "id": 1], "result", method.exampleResult)
        return text + "```\n"
    }

    private static func section(_ notification: NotificationDescription) -> String {
        var text = "\n## \(notification.name)\n\n\(notification.summary).\n\n"
        text += table("Parameter", rows(notification.parameters))
        text += "```\n"
        text += line(
            "←", ["jsonrpc": "2.0", "method": .string(notification.name)], "params", .object(notification.example))
        return text + "```\n"
    }

    private static func title(_ access: Access) -> String {
        switch access {
        case .anyone: "anyone"
        case .signedIn: "signed-in users"
        case .rules: "anyone the rules allow"
        case .administrator: "administrators"
        }
    }

    private static func line(_ arrow: String, _ head: JSONObject, _ name: String, _ value: JSONValue) -> String {
        var object = head
        if value != [:] || name == "result" { object[name] = value }
        return "\(arrow) \(String(decoding: JSONValue.object(object).encoded, as: UTF8.self))\n"
    }

    private struct Row {
        var name: String
        var type: String
        var isRequired: Bool
        var meaning: String
    }

    /// One row for each parameter, and for each member of parameters that are objects.
    private static func rows(_ parameters: [FieldDescription], under prefix: String = "") -> [Row] {
        parameters.flatMap { parameter in
            let name = prefix + parameter.name
            let row = Row(
                name: name, type: type(parameter.schema), isRequired: parameter.isRequired, meaning: parameter.meaning)
            let items = parameter.schema["items"]?.object ?? [:]
            return [row] + rows(FieldDescription.members(of: parameter.schema), under: "\(name).")
                + rows(FieldDescription.members(of: items), under: "\(name)[].")
        }
    }

    private static func table(_ heading: String, _ rows: [Row]) -> String {
        guard !rows.isEmpty else { return "" }
        var text = "| \(heading) | Type | | Meaning |\n|---|---|---|---|\n"
        for row in rows {
            text += "| `\(row.name)` | \(row.type) | \(row.isRequired ? "" : "optional") | \(row.meaning) |\n"
        }
        return text + "\n"
    }

    private static func type(_ schema: JSONObject) -> String {
        if let choices = schema["enum"]?.array {
            return choices.compactMap(\.string).map { "`\($0)`" }.joined(separator: " or ")
        }
        switch schema["type"] {
        case "array":
            let items = type(schema["items"]?.object ?? [:])
            return "array of \(items)"
        case .array(let names)?: return names.compactMap(\.string).joined(separator: " or ")
        case .string(let name)?: return name
        default: return "any JSON"
        }
    }
}

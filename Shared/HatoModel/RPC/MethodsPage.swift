/// Generates a service's METHODS.md from its declared methods.
public enum MethodsPage {
    /// The page as Markdown: a section for each method and notification, with their fields and an example.
    public static func markdown(
        title: String, methods: [any RPCRequest.Type], notifications: [any RPCNotification.Type] = []
    ) -> String {
        var page = "# \(title)\n\n\(head)"
        for type in methods { page += section(MethodDescription(type)) }
        if !notifications.isEmpty {
            page += "\n# What the server sends\n"
            for type in notifications { page += section(NotificationDescription(type)) }
        }
        return page
    }

    /// What the sections do not repeat.
    private static var head: String {
        let codes: [RPCError.Code] = [
            .unauthenticated, .permissionDenied, .notFound, .alreadyExists, .failedPrecondition, .resourceExhausted,
            .unavailable, .invalidArgument, .invalidParams, .internalError,
        ]
        let rows = codes.map { code in
            "| \(code.name) | \(code.rawValue) | \(reasons(of: MethodError.general.filter { $0.code == code })) |\n"
        }
        return """
            Made from the declared methods; do not edit. Methods of the protocol that are not listed are not there yet (-32601).

            - **Identity.** Every call may also have `auth`: an ID token of auth, or the administrator key. With that key it may
              have `as`, too: `{"uid", "token"?}` makes the call as that user, `null` without a user, and `{"variable": {…}}`
              under security rules that see this object as `auth`. A call without `auth` has the identity of
              `session.authenticate`. On a connection that forwards (`session.forward`), every call may have `from`, too, an
              IP address that stands for that of the socket, unless `from` is a parameter of the method.
            - **Members.** `optional` means that a member may be absent. An optional parameter that is null counts as absent unless its
              meaning says otherwise. Bounds and times are those of the default settings (SETTINGS.md of each service). `time`
              and names that end in `At` are in milliseconds since 1970.
            - **Order.** A method whose effect is `read` sees the earlier writes of its connection. The response of a `slow`
              method may come after those of later requests.
            - **Errors.** An error has `code`, `message` and `data`: `reason`, which does not change; `retryable`, whether the
              same call may succeed later; and `parameter` if a parameter is wrong. Every method may return the reasons of this
              table; each method lists further ones.

            | Error | Code | Reasons |
            |---|---|---|
            \(rows.joined())
            """
    }

    /// The reasons of errors with one code, each group with its members of `data`.
    private static func reasons(of errors: [MethodError]) -> String {
        var groups: [(data: [String], reasons: [String])] = []
        for error in errors {
            let index = groups.firstIndex { $0.data == error.data } ?? groups.endIndex
            if index == groups.endIndex { groups.append((error.data, [])) }
            groups[index].reasons += error.reasons
        }
        return groups.map { group in
            let data = group.data.map { "`data.\($0)`" }.joined(separator: ", ")
            return group.reasons.map { "`\($0)`" }.joined(separator: ", ") + (data.isEmpty ? "" : " (with \(data))")
        }.joined(separator: "; ")
    }

    private static func table(_ errors: [MethodError]) -> String {
        guard !errors.isEmpty else { return "" }
        let rows = errors.byCode.map { entry in
            "| \(entry.code.name) | \(reasons(of: errors.filter { $0.code == entry.code })) |\n"
        }
        return "| Error | Reasons |\n|---|---|\n\(rows.joined())\n"
    }

    private static func section(_ method: MethodDescription) -> String {
        let slow = method.isSlow ? " · slow: responses of later requests may come first" : ""
        var text = "\n## \(method.name)\n\n\(method.summary).\n\n"
        text += "Access: \(title(method.access)) · Effect: \(method.effect.rawValue)\(slow)\n\n"
        text += table("Parameter", rows(method.parameters))
        let items = method.result["items"]?.object ?? [:]
        text += table(
            "Result",
            rows(FieldDescription.members(of: method.result))
                + rows(FieldDescription.members(of: items), under: "[]."))
        if method.result["properties"] == [:] { text += "Result: `{}`\n\n" }
        if method.result.isEmpty { text += "Result: a JSON object, as described above.\n\n" }
        text += table(method.errors)
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
        case .signedIn: "signed-in users and administrators"
        case .rules: "any caller whom the security rules allow"
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
                name: name, type: type(parameter.schema), isRequired: parameter.isRequired,
                meaning: parameter.meaning + example(of: parameter))
            let items = parameter.schema["items"]?.object ?? [:]
            return [row] + rows(FieldDescription.members(of: parameter.schema), under: "\(name).")
                + rows(FieldDescription.members(of: items), under: "\(name)[].")
        }
    }

    /// The example of a parameter behind its meaning, unless the meaning has one.
    private static func example(of parameter: FieldDescription) -> String {
        guard let example = parameter.example, !parameter.meaning.contains("e.g. ") else { return "" }
        if case .bool = example { return "" }
        let text = String(decoding: example.encoded, as: UTF8.self)
        return parameter.meaning.contains(example.string ?? text) ? "" : ". Example: `\(text)`"
    }

    private static func table(_ heading: String, _ rows: [Row]) -> String {
        guard !rows.isEmpty else { return "" }
        var text = "| \(heading) | Type | | Meaning |\n|---|---|---|---|\n"
        for row in rows {
            let isAlwaysPresent = row.isRequired || row.type.hasSuffix(" or null")
            text += "| `\(row.name)` | \(row.type) | \(isAlwaysPresent ? "" : "optional") | \(row.meaning) |\n"
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
        case "object":
            guard let values = schema["additionalProperties"]?.object else { return "object" }
            return "object of \(type(values))"
        case .array(let names)?: return names.compactMap(\.string).joined(separator: " or ")
        case .string(let name)?: return name
        default: return "any JSON"
        }
    }
}

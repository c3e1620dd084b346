import HatoModel

/// A message of FCM HTTP v1 as a call of the notifier.
///
/// A message that shows something (`notification`) becomes `notifier.send`. One without becomes
/// `notifier.sendToDevice`, which takes `data` alone, and so less of the members of the platforms. `ttl`, `priority`
/// and `collapse_key` of Android count for the delivery; the other members of the platforms pass through.
struct FCMMessage {
    private enum Target {
        case token(String)
        case topic(String)
    }

    private let message: MessageMembers
    private let target: Target
    private let isDryRun: Bool
    private let android: MessageMembers

    /// Of FCM: four weeks.
    private static let secondsMax = 2_419_200

    /// - Parameter body: of the request.
    init(_ body: JSONObject) throws(PushFault) {
        var request: JSONObject = [:]
        for member in body.members { request[ProtoNames.snakeCase(member.name)] = member.value }
        guard request.count == body.count else { throw .wrong("validate_only", "A member is there twice") }
        let top = MessageMembers(object: request, path: "request")
        try top.allow(["message", "validate_only"])
        isDryRun = try top.flag("validate_only") ?? false
        guard case .object(let object)? = top["message"] else {
            throw .wrong("message", "'message' is needed: an object, e.g. {\"token\": \"…\", \"notification\": {}}")
        }
        message = MessageMembers(object: try ProtoNames.snakeCase(object, at: "message"), path: "message")
        try message.allow(Self.names)
        target = try Self.target(message)
        android = try message.members("android") ?? MessageMembers(object: [:], path: "message.android")
    }

    private static let targets = ["token", "topic", "condition", "fid"]
    private static let names = Set(targets + ["name", "data", "notification", "android", "webpush", "apns"])
        .union(["fcm_options"])

    private static func target(_ message: MessageMembers) throws(PushFault) -> Target {
        var found: (name: String, value: String)?
        for name in targets {
            guard let value = try message.text(name) else { continue }
            guard found == nil else {
                throw .wrong("message", "oneof field 'target' is already set. Cannot set '\(name)'")
            }
            found = (name, value)
        }
        switch found {
        case nil: throw .wrong("message", "Recipient of the message is not set.")
        case ("token", let token)?: return .token(token)
        case ("topic", let topic)?:
            return .topic(topic.hasPrefix("/topics/") ? String(topic.dropFirst("/topics/".count)) : topic)
        case (let name, _)?:
            throw .unsupported("message.\(name)", "'message.\(name)' is not supported: give a token or a topic")
        }
    }

    /// The call.
    var call: PushRequest.Call {
        get throws(PushFault) {
            let shown = try message.members("notification")
            try shown?.allow(["title", "body", "image"])
            let (title, body) = (try shown?.text("title"), try shown?.text("body"))
            guard title != nil || body != nil else { return try silent() }
            return try send(title: title, body: body, image: try shown?.text("image"))
        }
    }

    // MARK: With a text

    private func send(title: String?, body: String?, image: String?) throws(PushFault) -> PushRequest.Call {
        let to: JSONObject =
            switch target {
            case .token(let token): ["tokens": [["platform": "fcm", "token": .string(token)]]]
            case .topic(let topic): ["topic": .string(topic)]
            }
        var options = JSONObject(present: [
            "priority": .string(try priority() ?? "high"),
            "ttlSeconds": .number(Double(max(1, try ttlSeconds() ?? Self.secondsMax))),
            "collapseKey": .text(try android.text("collapse_key")), "image": .text(image),
        ])
        if case .topic = target {
            options["link"] = .text(try message.members("webpush")?.members("fcm_options")?.text("link"))
        }
        var params = JSONObject(present: [
            "to": .object(to),
            "notification": .object(JSONObject(present: ["title": .text(title), "body": .text(body)])),
            "options": .object(options), "platforms": try platforms().map { .object($0) },
        ])
        if var data = try message.texts("data"), !data.isEmpty {
            // The notifier checks such data against the type of this name.
            if let type = data[Notifier.PayloadType.typeField] {
                params["type"] = type
                data[Notifier.PayloadType.typeField] = nil
            }
            params["data"] = .object(data)
        }
        if isDryRun { params["dryRun"] = true }
        return PushRequest.Call(method: Notifier.Send.method, params: params, isDryRun: isDryRun)
    }

    /// `HIGH` and `NORMAL`, which SDKs write in lower case too.
    private func priority() throws(PushFault) -> String? {
        guard let text = try android.text("priority") else { return nil }
        let priority = text.lowercasedASCII
        guard priority == "high" || priority == "normal" else {
            throw .wrong("message.android.priority", "'message.android.priority' is HIGH or NORMAL")
        }
        return priority
    }

    /// Whole seconds of a duration such as `3600s` or `1.5s`, rounded up.
    private func ttlSeconds() throws(PushFault) -> Int? {
        guard let text = try android.text("ttl") else { return nil }
        let digits = text.utf8.dropLast()
        guard text.utf8.last == UInt8(ascii: "s"), (1...20).contains(digits.count),
            digits.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
            let seconds = Double(String(decoding: digits, as: UTF8.self)), seconds <= Double(Self.secondsMax)
        else {
            throw .wrong(
                "message.android.ttl", "'message.android.ttl' has seconds from 0s to \(Self.secondsMax)s, e.g. 3600s")
        }
        return Int(seconds.rounded(.up))
    }

    /// What passes through: to FCM as it is, and to devices of a topic that are reached without FCM.
    private func platforms() throws(PushFault) -> JSONObject? {
        let (apns, webpush) = (try message.members("apns"), try message.members("webpush"))
        var fcm = JSONObject(present: [
            "apns": message["apns"], "webpush": message["webpush"], "fcm_options": message["fcm_options"],
        ])
        let rest = android.object.without(["priority", "ttl", "collapse_key"])
        if !rest.isEmpty { fcm["android"] = .object(rest) }
        var platforms: JSONObject = [:]
        if !fcm.isEmpty { platforms["fcm"] = .object(fcm) }
        guard case .topic = target else { return platforms.isEmpty ? nil : platforms }
        let payload = try apns?.members("payload")
        let own = payload?.object.without(["aps"]) ?? [:]
        let apple = JSONObject(present: [
            "headers": apns?["headers"], "aps": payload?["aps"], "payload": own.isEmpty ? .absent : .object(own),
        ])
        if !apple.isEmpty { platforms["apns"] = .object(apple) }
        let browser = JSONObject(present: ["headers": webpush?["headers"], "notification": webpush?["notification"]])
        if !browser.isEmpty { platforms["webpush"] = .object(browser) }
        return platforms.isEmpty ? nil : platforms
    }

    // MARK: Without a text

    private func silent() throws(PushFault) -> PushRequest.Call {
        guard case .token(let token) = target else {
            throw .unsupported("message.notification", "A message to a topic needs a title or a body in 'notification'")
        }
        let apns = try message.members("apns")
        let aps = try apns?.members("payload")?.members("aps")
        try refuseShown(apns, aps)
        guard let data = try message.texts("data"), !data.isEmpty else {
            throw .wrong("message", "A message has a title or a body in 'notification', or 'data'")
        }
        let options = JSONObject(present: [
            "priority": .text(try priority()), "timeToLive": try ttlSeconds().map { .number(Double($0)) },
            "collapseKey": .text(try android.text("collapse_key")),
            "restrictedPackageName": .text(try android.text("restricted_package_name")),
            "contentAvailable": aps?["content-available"] == 1 ? true : .absent,
            "mutableContent": aps?["mutable-content"] == 1 ? true : .absent,
            "dryRun": isDryRun ? true : .absent,
        ])
        var params: JSONObject = ["token": .string(token), "payload": ["data": .object(data)]]
        if !options.isEmpty { params["options"] = .object(options) }
        return PushRequest.Call(method: Notifier.SendToDevice.method, params: params, isDryRun: isDryRun)
    }

    /// Refuses what `notifier.sendToDevice` would lose.
    private func refuseShown(_ apns: MessageMembers?, _ aps: MessageMembers?) throws(PushFault) {
        let lost: [(MessageMembers?, Set<String>)] = [
            (android, ["priority", "ttl", "collapse_key", "restricted_package_name", "fcm_options"]),
            // Headers are made anew.
            (apns, ["headers", "payload", "fcm_options"]), (try apns?.members("payload"), ["aps"]),
            (aps, ["content-available", "mutable-content"]),
            (try message.members("webpush"), ["headers", "fcm_options"]),
        ]
        for (members, known) in lost {
            guard let members, let member = members.object.members.first(where: { !known.contains($0.name) }) else {
                continue
            }
            let path = "\(members.path).\(member.name)"
            throw .unsupported(path, "'\(path)' needs a title or a body in 'message.notification'")
        }
    }
}

extension JSONValue? {
    /// No value, where `nil` would be JSON's null.
    static var absent: JSONValue? { Optional.none }
}

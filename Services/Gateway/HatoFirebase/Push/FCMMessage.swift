import HatoModel

/// A message of FCM HTTP v1 as a call of the notifier.
///
/// A message with nothing but `data` becomes `notifier.sendToDevice`, whose response says whether the token is gone.
/// Any other one becomes `notifier.send`: its text is that of `notification`, or stands with the platforms, and the
/// members of the platforms pass through. `ttl`, `priority` and `collapse_key` of Android count for the delivery.
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

    /// - Parameter name: without `/topics/`.
    static func isTopic(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || "-_.~%".utf8.contains(byte)
            }
    }

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
            let name = topic.hasPrefix("/topics/") ? String(topic.dropFirst("/topics/".count)) : topic
            guard isTopic(name) else {
                throw .wrong(
                    "message.topic",
                    "'message.topic' has letters, digits and the characters -_.~% alone, e.g. news_en")
            }
            return .topic(name)
        case (let name, _)?:
            throw .unsupported("message.\(name)", "'message.\(name)' is not supported: give a token or a topic")
        }
    }

    /// The call.
    var call: PushRequest.Call {
        get throws(PushFault) {
            let shown = try message.members("notification")
            try shown?.allow(["title", "body", "image"])
            let text = JSONObject(present: [
                "title": .text(try shown?.text("title")), "body": .text(try shown?.text("body")),
            ])
            let image = try shown?.text("image")
            if text.isEmpty, image == nil, let silent = try silent() { return silent }
            return try send(text, image: image)
        }
    }

    // MARK: notifier.send

    private func send(_ text: JSONObject, image: String?) throws(PushFault) -> PushRequest.Call {
        let platforms = try platforms(isAlone: text.isEmpty, image: image)
        try requireContent(text, platforms)
        let to: JSONObject =
            switch target {
            case .token(let token): ["tokens": [["platform": "fcm", "token": .string(token)]]]
            case .topic(let topic): ["topic": .string(topic)]
            }
        // As with FCM, one that Android shows is urgent.
        let isShown = !text.isEmpty || image != nil || android["notification"] != nil
        var options = JSONObject(present: [
            "priority": .string(try priority() ?? (isShown ? "high" : "normal")),
            "ttlSeconds": .number(Double(max(1, try ttlSeconds() ?? Self.secondsMax))),
            "collapseKey": .text(try android.text("collapse_key")), "image": .text(text.isEmpty ? nil : image),
        ])
        if case .topic = target {
            options["link"] = .text(try message.members("webpush")?.members("fcm_options")?.text("link"))
        }
        var params = JSONObject(present: [
            "to": .object(to), "notification": text.isEmpty ? .absent : .object(text),
            "options": .object(options), "platforms": platforms.isEmpty ? .absent : .object(platforms),
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

    /// What `notifier.send` needs: a text, or members of the platforms; of a topic, those that show something.
    private func requireContent(_ text: JSONObject, _ platforms: JSONObject) throws(PushFault) {
        guard text.isEmpty else { return }
        if case .topic = target, !(try isShownByPlatforms) {
            throw .unsupported(
                "message.notification", "A message to a topic needs a text, in 'notification' or with a platform")
        }
        guard !platforms.isEmpty else {
            throw .wrong("message", "A message has 'notification', 'data', or members of a platform")
        }
    }

    private var isShownByPlatforms: Bool {
        get throws(PushFault) {
            if try aps?["alert"] != nil { return true }
            let (shown, browser) = (
                try android.members("notification"), try message.members("webpush")?.members("notification")
            )
            return ["title", "body", "title_loc_key", "body_loc_key"].contains { shown?[$0] != nil }
                || browser?["title"] != nil
        }
    }

    private var aps: MessageMembers? {
        get throws(PushFault) { try message.members("apns")?.members("payload")?.members("aps") }
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
    ///
    /// - Parameters:
    ///   - isAlone: there is no text beside it.
    ///   - image: of `notification`.
    private func platforms(isAlone: Bool, image: String?) throws(PushFault) -> JSONObject {
        let (apns, webpush) = (try apns(isAlone: isAlone), try message.members("webpush"))
        var fcm = JSONObject(present: [
            "notification": image.flatMap { isAlone ? ["image": .string($0)] : .absent },
            "apns": apns?.isEmpty == false ? apns.map { .object($0) } : .absent, "webpush": message["webpush"],
            "fcm_options": message["fcm_options"],
        ])
        let rest = android.object.without(["priority", "ttl", "collapse_key"])
        if !rest.isEmpty { fcm["android"] = .object(rest) }
        var platforms: JSONObject = [:]
        if !fcm.isEmpty { platforms["fcm"] = .object(fcm) }
        guard case .topic = target else { return platforms }
        let payload = apns?["payload"]?.object
        let own = payload?.without(["aps"]) ?? [:]
        let apple = JSONObject(present: [
            "headers": apns?["headers"], "aps": payload?["aps"], "payload": own.isEmpty ? .absent : .object(own),
        ])
        if !apple.isEmpty { platforms["apns"] = .object(apple) }
        let browser = JSONObject(present: ["headers": webpush?["headers"], "notification": webpush?["notification"]])
        if !browser.isEmpty { platforms["webpush"] = .object(browser) }
        return platforms
    }

    /// `apns`, in which an alert without a text beside it is urgent unless its headers say otherwise, as with FCM.
    private func apns(isAlone: Bool) throws(PushFault) -> JSONObject? {
        guard let apns = try message.members("apns") else { return nil }
        let (given, aps) = (try apns.members("headers")?.object ?? [:], try aps)
        guard isAlone, aps?["alert"] != nil, given["apns-priority"] == nil else { return apns.object }
        var (headers, object) = (given, apns.object)
        headers["apns-priority"] = "10"
        object["headers"] = .object(headers)
        return object
    }

    // MARK: notifier.sendToDevice

    /// Nil unless there is nothing but `data` for a token, and what this call takes with it.
    private func silent() throws(PushFault) -> PushRequest.Call? {
        guard case .token(let token) = target, let data = try message.texts("data"), !data.isEmpty else { return nil }
        let apns = try message.members("apns")
        let (payload, headers, aps) = (try apns?.members("payload"), try apns?.members("headers"), try aps)
        let taken: [(MessageMembers?, Set<String>)] = [
            (message, ["token", "name", "data", "notification", "android", "apns"]),
            (android, ["priority", "ttl", "collapse_key", "restricted_package_name"]),
            (apns, ["headers", "payload"]), (payload, ["aps"]), (aps, ["content-available", "mutable-content"]),
        ]
        for (members, names) in taken where members?.hasOthers(than: names) == true { return nil }
        // They are made anew, and are these.
        let made: JSONObject = ["apns-priority": "5", "apns-push-type": "background"]
        for header in headers?.object.members ?? [] where made[header.name] != header.value { return nil }
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
}

extension MessageMembers {
    /// Whether there are others than these, empty objects aside.
    fileprivate func hasOthers(than names: Set<String>) -> Bool {
        object.members.contains { member in
            !names.contains(member.name) && !member.value.isNull && member.value.object?.isEmpty != true
        }
    }
}

extension JSONValue? {
    /// No value, where `nil` would be JSON's null.
    static var absent: JSONValue? { Optional.none }
}

import HatoModel

/// A message of FCM's old HTTP interface (`/fcm/send`) as a call of the notifier. Members that it does not know are
/// ignored, as FCM ignored them.
struct LegacyFCMMessage {
    private enum Target {
        case one(String)
        case several([JSONValue])
        case topic(String)

        /// Nil: it is a topic.
        var tokenCount: Int? {
            switch self {
            case .one: 1
            case .several(let tokens): tokens.count
            case .topic: nil
            }
        }
    }

    private let message: MessageMembers
    private let target: Target

    /// Of FCM. Each has a result, also where no key was checked.
    private static let tokensMax = 1_000

    /// - Parameter body: of the request.
    init(_ body: JSONObject) throws(PushFault) {
        message = MessageMembers(object: body, path: "message")
        target = try Self.target(message)
    }

    private static func target(_ message: MessageMembers) throws(PushFault) -> Target {
        let to = try message.text("to")
        if message["condition"] != nil { throw .unsupported("condition", "condition is not supported: give to") }
        guard let list = message["registration_ids"] else {
            guard let to else { throw .refused("MissingRegistration", tokens: 1) }
            let topics = "/topics/"
            guard to.hasPrefix(topics) else { return .one(to) }
            let topic = String(to.dropFirst(topics.count))
            guard FCMMessage.isTopic(topic) else {
                throw .wrong(
                    "to",
                    "InvalidParameters: a topic has letters, digits and the characters -_.~% alone, "
                        + "e.g. /topics/news_en")
            }
            return .topic(topic)
        }
        guard to == nil else {
            throw .wrong("to", "Must use either \"registration_ids\" field or \"to\", not both")
        }
        guard let tokens = list.array, (1...tokensMax).contains(tokens.count),
            tokens.allSatisfy({ $0.string != nil })
        else {
            throw .wrong("registration_ids", "\"registration_ids\" is a list of 1 to \(tokensMax) strings")
        }
        return .several(tokens)
    }

    /// The call.
    var call: PushRequest.Call {
        get throws(PushFault) {
            let notification = try notification()
            var payload = JSONObject(present: ["notification": notification.map { .object($0) }])
            if let data = try data(), !data.isEmpty { payload["data"] = .object(data) }
            let token: JSONValue
            switch target {
            case .topic(let topic): return try send(to: topic, notification ?? [:], payload["data"])
            case .one(let one): token = .string(one)
            case .several(let tokens): token = .array(tokens)
            }
            let options = JSONObject(present: [
                "priority": .text(try priority()), "timeToLive": try ttl().map { .number(Double($0)) },
                "collapseKey": .text(try message.text("collapse_key")),
                "contentAvailable": .flag(try message.flag("content_available")),
                "mutableContent": .flag(try message.flag("mutable_content")),
                "dryRun": .flag(try message.flag("dry_run")),
                "restrictedPackageName": .text(try message.text("restricted_package_name")),
            ])
            var params: JSONObject = ["token": token, "payload": .object(payload)]
            if !options.isEmpty { params["options"] = .object(options) }
            return PushRequest.Call(method: Notifier.SendToDevice.method, params: params)
        }
    }

    private func send(
        to topic: String, _ notification: JSONObject, _ data: JSONValue?
    ) throws(PushFault) -> PushRequest.Call {
        let shown = JSONObject(present: ["title": notification["title"], "body": notification["body"]])
        guard !shown.isEmpty else {
            throw .unsupported("notification", "A message to a topic needs a title or a body in notification")
        }
        let options = JSONObject(present: [
            "priority": .string(try priority() ?? "high"),
            "ttlSeconds": .number(Double(max(1, try ttl() ?? Self.secondsMax))),
            "collapseKey": .text(try message.text("collapse_key")), "sound": notification["sound"],
            "badge": notification["badge"]?.string.flatMap { Double($0) }.map { .number($0) },
        ])
        var params: JSONObject = [
            "to": ["topic": .string(topic)], "notification": .object(shown), "options": .object(options),
        ]
        if var object = data?.object {
            if let type = object[Notifier.PayloadType.typeField] {
                params["type"] = type
                object[Notifier.PayloadType.typeField] = nil
            }
            params["data"] = .object(object)
        }
        if try message.flag("dry_run") == true { params["dryRun"] = true }
        return PushRequest.Call(method: Notifier.Send.method, params: params)
    }

    private static let secondsMax = 2_419_200

    /// `10` and `5` are the names of old SDKs.
    private func priority() throws(PushFault) -> String? {
        switch message["priority"] {
        case nil: return nil
        case .string("high")?, .string("10")?, .number(10)?: return "high"
        case .string("normal")?, .string("5")?, .number(5)?: return "normal"
        default: throw .wrong("priority", "InvalidParameters: priority is high or normal")
        }
    }

    private func ttl() throws(PushFault) -> Int? {
        guard let value = message["time_to_live"] else { return nil }
        guard let seconds = value.integer ?? value.string.flatMap({ Int64($0) }),
            (0...Int64(Self.secondsMax)) ~= seconds
        else { throw .refused("InvalidTtl", tokens: target.tokenCount) }
        return Int(seconds)
    }

    /// All values are texts; others were written as JSON.
    private func data() throws(PushFault) -> JSONObject? {
        guard let data = try message.members("data") else { return nil }
        var texts: JSONObject = [:]
        for member in data.object.members { texts[member.name] = .string(Self.text(member.value)) }
        return texts
    }

    private static func text(_ value: JSONValue) -> String {
        value.string ?? String(decoding: value.encoded, as: UTF8.self)
    }

    private static let notificationNames: KeyValuePairs<String, String> = [
        "title": "title", "body": "body", "badge": "badge", "sound": "sound", "icon": "icon", "color": "color",
        "tag": "tag", "click_action": "clickAction", "body_loc_key": "bodyLocKey", "body_loc_args": "bodyLocArgs",
        "title_loc_key": "titleLocKey", "title_loc_args": "titleLocArgs",
    ]

    private func notification() throws(PushFault) -> JSONObject? {
        guard let given = try message.members("notification") else { return nil }
        var shown: JSONObject = [:]
        for (name, native) in Self.notificationNames {
            // An empty one is as absent.
            guard let value = given[name], value != "" else { continue }
            shown[native] = .string(Self.text(value))
        }
        return shown.isEmpty ? nil : shown
    }
}

import HatoModel

/// Which member of a message of FCM an error of the notifier is about, in the words of Google.
enum FCMFields {
    /// The path of the member, and what is wrong with it; nil when the error does not say.
    static func wrong(_ error: RPCError) -> (field: String, words: String)? {
        guard let parameter = error.data["parameter"]?.string else { return nil }
        guard parameter == "platforms" else { return ("message.\(name(parameter))", inMessage(error.message)) }
        // The words begin with the path of the member.
        let path = error.message.prefix { $0 != " " }
        guard path.hasPrefix(fcm), let dot = path.lastIndex(of: ".") else { return ("message", error.message) }
        let field = "message.\(path.dropFirst(fcm.count))"
        guard error.message.hasPrefix("\(path) is not known") else { return (field, inMessage(error.message)) }
        let parent = "message.\(path[..<dot].dropFirst(fcm.count))"
        return (parent, unknown(String(path[dot...].dropFirst()), in: parent))
    }

    /// What is said of a member that no message has.
    ///
    /// - Parameter path: of the object.
    static func unknown(_ name: String, in path: String) -> String {
        "Invalid JSON payload received. Unknown name \"\(name)\" at '\(path)': Cannot find field."
    }

    private static let fcm = "platforms.fcm."

    private static let names = [
        "to": "token", "to.tokens.0": "token", "to.tokens.0.token": "token", "to.topic": "topic",
        "options.ttlSeconds": "android.ttl", "options.timeToLive": "android.ttl",
        "options.priority": "android.priority", "options.collapseKey": "android.collapse_key",
        "options.image": "notification.image", "options.link": "webpush.fcm_options.link",
        "options.restrictedPackageName": "android.restricted_package_name", "payload.data": "data",
        "type": "data.\(Notifier.PayloadType.typeField)",
    ]

    private static func name(_ parameter: String) -> String { names[parameter] ?? parameter }

    /// The text with the names that the members have in a message of FCM.
    private static func inMessage(_ text: String) -> String {
        let text = text.replacing(fcm, with: "message.").replacing("payload.data", with: "data")
        return text.replacing("to.tokens.0.", with: "")
    }
}

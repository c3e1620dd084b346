import HatoModel

/// Names of members as protobuf's JSON has them: in camel case or in snake case. FCM takes both.
enum ProtoNames {
    /// Which objects below a message have members of FCM's own; those of other objects are the sender's.
    private indirect enum Shape {
        case members([String: Shape])
    }

    private static let message = Shape.members([
        "notification": .members([:]), "fcm_options": .members([:]),
        "android": .members([
            "notification": .members(["light_settings": .members(["color": .members([:])])]),
            "fcm_options": .members([:]),
        ]),
        "apns": .members(["fcm_options": .members([:])]), "webpush": .members(["fcm_options": .members([:])]),
    ])

    /// A message with all such names in snake case. Throws `PushFault` for a member that is there twice.
    static func snakeCase(_ object: JSONObject, at path: String) throws(PushFault) -> JSONObject {
        try renamed(object, message, path)
    }

    private static func renamed(
        _ object: JSONObject, _ shape: Shape, _ path: String
    ) throws(PushFault) -> JSONObject {
        guard case .members(let inner) = shape else { return object }
        var result: JSONObject = [:]
        for member in object.members {
            let name = snakeCase(member.name)
            guard result[name] == nil else { throw .wrong("\(path).\(name)", "'\(path).\(name)' is there twice") }
            if let shape = inner[name], case .object(let members) = member.value {
                result[name] = .object(try renamed(members, shape, "\(path).\(name)"))
            } else {
                result[name] = member.value
            }
        }
        return result
    }

    static func snakeCase(_ name: String) -> String {
        var text = ""
        for byte in name.utf8 {
            if (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) {
                text.append("_")
                text.unicodeScalars.append(Unicode.Scalar(byte | 0x20))
            } else if byte < 0x80 {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                return name
            }
        }
        return text
    }
}

import HatoModel

/// The members of one object of a request of FCM, with the path of the object for errors. Null is absent.
struct MessageMembers {
    let object: JSONObject
    let path: String

    private func refused(_ name: String, _ expected: String) -> PushFault {
        .wrong("\(path).\(name)", "Invalid value at '\(path).\(name)': \(expected) is expected")
    }

    subscript(name: String) -> JSONValue? {
        guard let value = object[name], !value.isNull else { return nil }
        return value
    }

    /// An empty text is as absent. Throws `PushFault` for what is no text.
    func text(_ name: String) throws(PushFault) -> String? {
        switch self[name] {
        case nil: return nil
        case .string(let text)?: return text.isEmpty ? nil : text
        default: throw refused(name, "a string")
        }
    }

    func flag(_ name: String) throws(PushFault) -> Bool? {
        switch self[name] {
        case nil: return nil
        case .bool(let flag)?: return flag
        default: throw refused(name, "true or false")
        }
    }

    func members(_ name: String) throws(PushFault) -> MessageMembers? {
        switch self[name] {
        case nil: return nil
        case .object(let object)?: return MessageMembers(object: object, path: "\(path).\(name)")
        default: throw refused(name, "an object")
        }
    }

    /// Strings by name. Throws `PushFault` for another value.
    func texts(_ name: String) throws(PushFault) -> JSONObject? {
        guard let members = try members(name) else { return nil }
        for member in members.object.members where member.value.string == nil {
            throw members.refused(member.name, "a string")
        }
        return members.object
    }

    /// Throws `PushFault` for the first member that is none of these.
    func allow(_ names: Set<String>) throws(PushFault) {
        if let member = object.members.first(where: { !names.contains($0.name) }) {
            throw .unknown(member.name, in: path)
        }
    }
}

extension JSONObject {
    /// Without these members.
    func without(_ names: Set<String>) -> JSONObject {
        JSONObject(uniqueMembers: members.filter { !names.contains($0.name) })
    }
}

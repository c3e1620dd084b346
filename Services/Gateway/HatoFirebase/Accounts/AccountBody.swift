import HatoModel

/// The members of a request's body, by their names in camel case or in snake case; null is absent.
///
/// int64 is a number or a text of digits, enumerations are names or positions (the Android SDK sends these), members
/// without a reader are ignored. A member of another type is refused by its name.
struct AccountBody: Sendable, Hashable, SecretHolder {
    private let object: JSONObject
    /// Where this object is in the body, for errors.
    private let path: String

    init(_ object: JSONObject = [:], path: String = "") {
        self.object = object
        self.path = path
    }

    /// - Parameter bytesMax: how many bytes the body may have.
    static func tooLong(bytesMax: Int) -> AuthFault {
        .invalidArgument("Request payload size exceeds the limit: \(bytesMax) bytes.")
    }

    /// No body is an empty object. Throws `AuthFault` for what is no JSON object.
    ///
    /// - Parameter bytesMax: how many bytes the body may have.
    /// - Parameter memoryMax: how many bytes of memory its values may take.
    init(_ bytes: [UInt8], bytesMax: Int, memoryMax: Int) throws(AuthFault) {
        guard bytes.count <= bytesMax else {
            throw Self.tooLong(bytesMax: bytesMax)
        }
        guard bytes.contains(where: { $0 > UInt8(ascii: " ") }) else {
            self.init()
            return
        }
        var scanner = JSONScanner(memoryMax: memoryMax)
        let value: JSONValue
        do throws(JSONError) {
            value = try scanner.value(bytes.span)
            try scanner.end(bytes.span)
        } catch { throw .invalid("\(error)") }
        guard case .object(let object) = value else { throw .invalid("The body should be an object") }
        self.init(object)
    }

    private subscript(name: String) -> JSONValue? {
        for candidate in [name, Self.snakeCase(name)] {
            if let value = object[candidate], !value.isNull { return value }
        }
        return nil
    }

    private static func snakeCase(_ name: String) -> String {
        var text = ""
        for character in name {
            if character.isUppercase { text.append("_") }
            text += character.lowercased()
        }
        return text
    }

    private func refuse(_ name: String, _ expected: String) -> AuthFault {
        .invalid("Invalid value at '\(path)\(name)': \(expected) is expected")
    }

    // MARK: Values

    /// Throws `AuthFault` for what is no text.
    func text(_ name: String) throws(AuthFault) -> String? {
        switch self[name] {
        case nil: return nil
        case .string(let text)?: return text
        default: throw refuse(name, "a string")
        }
    }

    /// A text that is not empty; an empty one is as absent. Throws `AuthFault` for what is no text.
    func filled(_ name: String) throws(AuthFault) -> String? {
        guard let text = try text(name), !text.isEmpty else { return nil }
        return text
    }

    func flag(_ name: String) throws(AuthFault) -> Bool? {
        switch self[name] {
        case nil: return nil
        case .bool(let flag)?: return flag
        default: throw refuse(name, "true or false")
        }
    }

    /// A number without fraction, or its digits as a text; an empty text is as absent. Throws `AuthFault`.
    func integer(_ name: String) throws(AuthFault) -> Int64? {
        switch self[name] {
        case nil: return nil
        case .number?:
            if let integer = self[name]?.integer { return integer }
        case .string(let text)?:
            if text.isEmpty { return nil }
            if let integer = Int64(text), integer.magnitude < 1 << 53 { return integer }
        default: break
        }
        throw refuse(name, "an integer")
    }

    /// An integer that fits. Throws `AuthFault`.
    func count(_ name: String) throws(AuthFault) -> Int? {
        guard let integer = try integer(name) else { return nil }
        guard let count = Int(exactly: integer), count >= 0, count <= Int32.max else {
            throw refuse(name, "an integer of at most 31 bits")
        }
        return count
    }

    /// The text of a choice, which may be given by its position. Throws `AuthFault` for another one.
    func choice(_ name: String, among choices: [String]) throws(AuthFault) -> String? {
        guard let value = self[name] else { return nil }
        if let choice = Self.chosen(value, among: choices) { return choice }
        throw refuse(name, "one of \(choices.joined(separator: ", "))")
    }

    private static func chosen(_ value: JSONValue, among choices: [String]) -> String? {
        switch value {
        case .string(let text): choices.first { $0 == text }
        case .number: value.integer.flatMap { choices.indices.contains(Int($0)) ? choices[Int($0)] : nil }
        default: nil
        }
    }

    // MARK: Lists and objects

    /// A list; one value alone stands for a list of it.
    private func list(_ name: String) -> [JSONValue] {
        switch self[name] {
        case nil: []
        case .array(let elements)?: elements
        case let value?: [value]
        }
    }

    func texts(_ name: String) throws(AuthFault) -> [String] {
        var texts: [String] = []
        for value in list(name) {
            guard case .string(let text) = value else { throw refuse(name, "a list of strings") }
            texts.append(text)
        }
        return texts
    }

    func choices(_ name: String, among choices: [String]) throws(AuthFault) -> [String] {
        var found: [String] = []
        for value in list(name) {
            guard let choice = Self.chosen(value, among: choices) else {
                throw refuse(name, "a list of \(choices.joined(separator: ", "))")
            }
            found.append(choice)
        }
        return found
    }

    func objects(_ name: String) throws(AuthFault) -> [AccountBody] {
        var found: [AccountBody] = []
        for (index, value) in list(name).enumerated() {
            guard case .object(let object) = value else { throw refuse(name, "a list of objects") }
            found.append(AccountBody(object, path: "\(path)\(name)[\(index)]."))
        }
        return found
    }

    func object(_ name: String) throws(AuthFault) -> AccountBody? {
        switch self[name] {
        case nil: return nil
        case .object(let object)?: return AccountBody(object, path: "\(path)\(name).")
        default: throw refuse(name, "an object")
        }
    }

    var description: String { "AccountBody(\(object.count) members)" }

    /// Whether the member is there and not null, whatever its type.
    func has(_ name: String) -> Bool { self[name] != nil }
}

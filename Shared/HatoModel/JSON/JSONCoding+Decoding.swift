/// How a whole decoding goes; every decoder of it has the same.
struct JSONDecodingSource {
    let unknown: JSONCoding.UnknownNames

    func decode<T: Decodable>(_ type: T.Type, _ value: JSONValue, at path: JSONCodingPath) throws -> T {
        if let scalar = try JSONScalar.read(type, value, at: path) { return scalar }
        let decoder = JSONValueDecoder(value, at: path, source: self)
        do {
            let result = try T(from: decoder)
            try decoder.refuseUnknownNames()
            return result
        } catch DecodingError.dataCorrupted(let context) where context.codingPath.count == path.keys.count {
            // What synthesised enums throw for a raw value they do not have.
            let choices = rawValues(of: type)
            throw JSONCodingError(
                .wrongType, at: path,
                choices.isEmpty
                    ? "\(path.quoted) is wrong: \(context.debugDescription)"
                    : "\(path.quoted) must be one of \(choices.joined(separator: ", "))")
        } catch {
            throw JSONCodingError(error, at: path)
        }
    }
}

/// The raw values of an enum that can list its cases; empty for any other type.
func rawValues(of type: Any.Type) -> [String] {
    func list<E: CaseIterable>(_ type: E.Type) -> [String] {
        type.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
    }
    guard let type = type as? any CaseIterable.Type else { return [] }
    return list(type)
}

/// What JSON has a value of its own for.
enum JSONScalar {
    /// Nil when the type is none of them and must decode itself.
    static func read<T>(_ type: T.Type, _ value: JSONValue, at path: JSONCodingPath) throws -> T? {
        if type == String.self { return try require(value.string, "a string", value, path) as? T }
        if type == Bool.self { return try require(value.bool, "true or false", value, path) as? T }
        if type == Double.self { return try require(value.number, "a number", value, path) as? T }
        if type == Float.self { return try require(value.number.map(Float.init), "a number", value, path) as? T }
        if type == JSONValue.self { return value as? T }
        if type == JSONObject.self { return try require(value.object, "an object", value, path) as? T }
        guard let integerType = type as? any FixedWidthInteger.Type else { return nil }
        return try integer(integerType, value, path) as? T
    }

    private static func integer<I: FixedWidthInteger>(
        _ type: I.Type, _ value: JSONValue, _ path: JSONCodingPath
    ) throws -> I {
        let number = try require(value.number, "an integer", value, path)
        guard let integer = number.exactInteger else {
            throw JSONCodingError(.wrongType, at: path, "\(path.quoted) must be an integer below 2^53")
        }
        guard let result = I(exactly: integer) else {
            let least = max(Int64(clamping: I.min), -(1 << 53) + 1)
            let most = min(Int64(clamping: I.max), 1 << 53 - 1)
            throw JSONCodingError(.wrongType, at: path, "\(path.quoted) must be an integer from \(least) to \(most)")
        }
        return result
    }

    private static func require<T>(
        _ found: T?, _ expected: String, _ value: JSONValue, _ path: JSONCodingPath
    ) throws -> T {
        guard let found else { throw wrongType(expected, value, path) }
        return found
    }

    static func wrongType(_ expected: String, _ value: JSONValue, _ path: JSONCodingPath) -> JSONCodingError {
        JSONCodingError(.wrongType, at: path, "\(path.quoted) must be \(expected), not \(value.kind)")
    }
}

extension JSONValue {
    /// What it is, in the words of errors.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// The decoder of one value. It remembers which names were asked for, to know the unknown ones afterwards.
private final class JSONValueDecoder: Decoder {
    let value: JSONValue
    let path: JSONCodingPath
    let source: JSONDecodingSource
    var askedNames: Set<String> = []
    /// Whether the type reads the value as something that has no names: what it decodes from that looks after itself.
    var isNameless = false

    var codingPath: [any CodingKey] { path.keys }
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(_ value: JSONValue, at path: JSONCodingPath, source: JSONDecodingSource) {
        self.value = value
        self.path = path
        self.source = source
    }

    func refuseUnknownNames() throws {
        guard source.unknown == .refused, !isNameless, case .object(let object) = value else { return }
        for member in object.members where !askedNames.contains(member.name) {
            let path = path + JSONCodingKey(stringValue: member.name)
            let known = askedNames.isEmpty ? "" : "; known are \(askedNames.sorted().joined(separator: ", "))"
            throw JSONCodingError(.unknownName, at: path, "\(path.quoted) is no known parameter\(known)")
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let object) = value else { throw JSONScalar.wrongType("an object", value, path) }
        isNameless = false
        return KeyedDecodingContainer(JSONKeyedSource<Key>(object: object, decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value else { throw JSONScalar.wrongType("an array", value, path) }
        return JSONUnkeyedSource(elements: elements, decoder: self)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        isNameless = true
        return JSONSingleSource(decoder: self)
    }
}

private struct JSONKeyedSource<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let object: JSONObject
    let decoder: JSONValueDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }

    var allKeys: [Key] { object.members.compactMap { Key(stringValue: $0.name) } }

    func contains(_ key: Key) -> Bool { member(key) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try required(key).isNull }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try decoder.source.decode(type, required(key), at: decoder.path + key)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        // A present null is a value only where any JSON is one.
        guard let value = member(key), !value.isNull || type == JSONValue.self else { return nil }
        return try decoder.source.decode(type, value, at: decoder.path + key)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try nested(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try nested(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { decoder }

    func superDecoder(forKey key: Key) throws -> any Decoder { try nested(key) }

    private func member(_ key: Key) -> JSONValue? {
        decoder.askedNames.insert(key.stringValue)
        return object[key.stringValue]
    }

    private func required(_ key: Key) throws -> JSONValue {
        guard let value = member(key) else {
            let path = decoder.path + key
            throw JSONCodingError(.missing, at: path, "\(path.quoted) is missing")
        }
        return value
    }

    private func nested(_ key: Key) throws -> JSONValueDecoder {
        JSONValueDecoder(try required(key), at: decoder.path + key, source: decoder.source)
    }
}

private struct JSONUnkeyedSource: UnkeyedDecodingContainer {
    let elements: [JSONValue]
    let decoder: JSONValueDecoder
    private(set) var currentIndex = 0

    init(elements: [JSONValue], decoder: JSONValueDecoder) {
        self.elements = elements
        self.decoder = decoder
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, elements[currentIndex].isNull else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let (value, path) = try next()
        return try decoder.source.decode(type, value, at: path)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try nested().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try nested().unkeyedContainer() }

    mutating func superDecoder() throws -> any Decoder { try nested() }

    private mutating func next() throws -> (JSONValue, JSONCodingPath) {
        let path = decoder.path + JSONCodingKey(intValue: currentIndex)
        guard !isAtEnd else { throw JSONCodingError(.missing, at: path, "\(path.quoted) is missing") }
        defer { currentIndex += 1 }
        return (elements[currentIndex], path)
    }

    private mutating func nested() throws -> JSONValueDecoder {
        let (value, path) = try next()
        return JSONValueDecoder(value, at: path, source: decoder.source)
    }
}

private struct JSONSingleSource: SingleValueDecodingContainer {
    let decoder: JSONValueDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool { decoder.value.isNull }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try decoder.source.decode(type, decoder.value, at: decoder.path)
    }
}

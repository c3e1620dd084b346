/// The decoder that takes notes: which names and types a type asks for.
final class JSONSchemaRecorder: Decoder {
    /// No value of a type could be made, so what holds it cannot be decoded to its end.
    struct NoValue: Error {}

    private enum Notes {
        case nothing
        case object(properties: JSONObject, required: [String])
        case other(JSONObject)
    }

    let sample: JSONValue?
    let depth: Int
    private var notes = Notes.nothing

    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(sample: JSONValue?, depth: Int) {
        self.sample = sample
        self.depth = depth
    }

    /// A type that asked for nothing is an object without members.
    var schema: JSONObject {
        switch notes {
        case .nothing: Self.object([:], required: [])
        case .object(let properties, let required): Self.object(properties, required: required)
        case .other(let schema): schema
        }
    }

    private static func object(_ properties: JSONObject, required: [String]) -> JSONObject {
        var schema: JSONObject = ["type": "object", "properties": .object(properties)]
        if !required.isEmpty { schema["required"] = .array(required.map { .string($0) }) }
        schema["additionalProperties"] = false
        return schema
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        if case .object = notes {} else { notes = .object(properties: [:], required: []) }
        return KeyedDecodingContainer(JSONKeyedRecorder<Key>(recorder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        notes = .other(["type": "array"])
        return JSONUnkeyedRecorder(recorder: self)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { JSONSingleRecorder(recorder: self) }

    /// Notes a property and gives a value for it, if the sample holds one or one can be made up.
    fileprivate func property<T: Decodable>(_ name: String, _ type: T.Type, isRequired: Bool) -> T? {
        let record = JSONSchemaRecord.of(type, sample: sample?[name], depth: depth + 1)
        note(name, record.schema, isRequired: isRequired)
        return record.value
    }

    fileprivate func note(_ name: String, _ schema: JSONObject, isRequired: Bool) {
        guard case .object(var properties, var required) = notes else { return }
        properties[name] = .object(schema)
        if isRequired, !required.contains(name) { required.append(name) }
        notes = .object(properties: properties, required: required)
    }

    /// Notes that the type is written as one value of another.
    fileprivate func single<T: Decodable>(_ type: T.Type) throws -> T {
        let record = JSONSchemaRecord.of(type, sample: sample, depth: depth + 1)
        notes = .other(record.schema)
        guard let value = record.value else { throw NoValue() }
        return value
    }

    fileprivate func items<T: Decodable>(_ type: T.Type, sample: JSONValue?) throws -> T {
        let record = JSONSchemaRecord.of(type, sample: sample, depth: depth + 1)
        notes = .other(["type": "array", "items": .object(record.schema)])
        guard let value = record.value else { throw NoValue() }
        return value
    }
}

private struct JSONKeyedRecorder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let recorder: JSONSchemaRecorder

    var codingPath: [any CodingKey] { recorder.codingPath }
    var allKeys: [Key] { recorder.sample?.object?.members.compactMap { Key(stringValue: $0.name) } ?? [] }

    func contains(_ key: Key) -> Bool { recorder.sample?[key.stringValue] != nil }

    func decodeNil(forKey key: Key) throws -> Bool { recorder.sample?[key.stringValue]?.isNull ?? true }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        guard let value = recorder.property(key.stringValue, type, isRequired: true) else {
            throw JSONSchemaRecorder.NoValue()
        }
        return value
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? { optional(type, key) }
    // The protocol brings its own version for each of these, which would not be noted.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { optional(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { optional(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { optional(type, key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { optional(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { optional(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { optional(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { optional(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { optional(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { optional(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { optional(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { optional(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { optional(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { optional(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { optional(type, key) }

    private func optional<T: Decodable>(_ type: T.Type, _ key: Key) -> T? {
        let value = recorder.property(key.stringValue, type, isRequired: false)
        return contains(key) ? value : nil
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        recorder.note(key.stringValue, ["type": "object"], isRequired: true)
        return try nested(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        recorder.note(key.stringValue, ["type": "array"], isRequired: true)
        return try nested(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { recorder }

    func superDecoder(forKey key: Key) throws -> any Decoder { nested(key) }

    private func nested(_ key: Key) -> JSONSchemaRecorder {
        JSONSchemaRecorder(sample: recorder.sample?[key.stringValue], depth: recorder.depth + 1)
    }
}

private struct JSONUnkeyedRecorder: UnkeyedDecodingContainer {
    let recorder: JSONSchemaRecorder
    private(set) var currentIndex = 0

    init(recorder: JSONSchemaRecorder) { self.recorder = recorder }

    private var elements: [JSONValue] { recorder.sample?.array ?? [] }

    var codingPath: [any CodingKey] { recorder.codingPath }
    var count: Int? { elements.count }
    /// Without a sample one element is made up, for its type.
    var isAtEnd: Bool { currentIndex >= max(elements.count, 1) }

    mutating func decodeNil() throws -> Bool { false }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let sample = currentIndex < elements.count ? elements[currentIndex] : nil
        currentIndex += 1
        return try recorder.items(type, sample: sample)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try superDecoder().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try superDecoder().unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder {
        let sample = currentIndex < elements.count ? elements[currentIndex] : nil
        currentIndex += 1
        return JSONSchemaRecorder(sample: sample, depth: recorder.depth + 1)
    }
}

private struct JSONSingleRecorder: SingleValueDecodingContainer {
    let recorder: JSONSchemaRecorder

    var codingPath: [any CodingKey] { recorder.codingPath }

    func decodeNil() -> Bool { false }

    func decode<T: Decodable>(_ type: T.Type) throws -> T { try recorder.single(type) }
}

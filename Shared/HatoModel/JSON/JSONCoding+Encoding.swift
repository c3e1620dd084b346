/// The encoder of one value: containers write into it, `value` is read when the type is done.
final class JSONEncodingTarget: Encoder {
    private enum Content {
        case nothing
        case value(JSONValue)
        case object([(name: String, target: JSONEncodingTarget)])
        case array([JSONEncodingTarget])
    }

    private let path: JSONCodingPath
    private var content = Content.nothing
    /// Where each name stands, so that a name written twice stands once.
    private var positions: [String: Int] = [:]

    var codingPath: [any CodingKey] { path.keys }
    let userInfo: [CodingUserInfoKey: Any] = [:]

    private init(at path: JSONCodingPath) { self.path = path }

    static func encode(_ value: some Encodable, at path: JSONCodingPath) throws -> JSONValue {
        let target = JSONEncodingTarget(at: path)
        try target.set(value)
        return target.value
    }

    /// A type that encoded nothing is the empty object, as `Empty` is.
    private var value: JSONValue {
        switch content {
        case .nothing: .object([:])
        case .value(let value): value
        case .object(let members):
            .object(JSONObject(uniqueMembers: members.map { JSONObject.Member($0.name, $0.target.value) }))
        case .array(let elements): .array(elements.map(\.value))
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        beginObject()
        return KeyedEncodingContainer(JSONKeyedTarget<Key>(target: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        beginArray()
        return JSONUnkeyedTarget(target: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { JSONSingleTarget(target: self) }

    fileprivate func beginObject() {
        if case .object = content { return }
        content = .object([])
    }

    fileprivate func beginArray() {
        if case .array = content { return }
        content = .array([])
    }

    fileprivate var count: Int {
        if case .array(let elements) = content { elements.count } else { 0 }
    }

    /// The place for the member `key`.
    fileprivate func member(_ key: any CodingKey) -> JSONEncodingTarget {
        let target = JSONEncodingTarget(at: path + key)
        guard case .object(var members) = content else { return target }
        content = .nothing
        if let position = positions[key.stringValue] {
            members[position].target = target
        } else {
            positions[key.stringValue] = members.count
            members.append((key.stringValue, target))
        }
        content = .object(members)
        return target
    }

    /// The place for one more element.
    fileprivate func element() -> JSONEncodingTarget {
        let target = JSONEncodingTarget(at: path + JSONCodingKey(intValue: count))
        guard case .array(var elements) = content else { return target }
        content = .nothing
        elements.append(target)
        content = .array(elements)
        return target
    }

    fileprivate func setNull() { content = .value(.null) }

    fileprivate func set<T: Encodable>(_ value: T) throws {
        if let scalar = try scalar(value) {
            content = .value(scalar)
            return
        }
        do { try value.encode(to: self) } catch { throw JSONCodingError(error, at: path) }
        // A dictionary has no order; documents and records made of it should still be the same twice.
        if value is any StringKeyed, case .object(let members) = content {
            content = .object(members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) })
        }
    }

    private func scalar<T>(_ value: T) throws -> JSONValue? {
        switch value {
        case let value as String: .string(value)
        case let value as Bool: .bool(value)
        case let value as Double: try number(value)
        case let value as Float: try number(Double(value))
        case let value as JSONValue: value
        case let value as JSONObject: .object(value)
        case let value as any FixedWidthInteger: try integer(value)
        default: nil
        }
    }

    private func number(_ value: Double) throws -> JSONValue {
        guard value.isFinite else {
            throw JSONCodingError(.wrongType, at: path, "\(path.quoted) is \(value), which JSON cannot say")
        }
        return .number(value)
    }

    private func integer<I: FixedWidthInteger>(_ value: I) throws -> JSONValue {
        guard value.magnitude < UInt64(1) << 53 else {
            throw JSONCodingError(.wrongType, at: path, "\(path.quoted) is \(value), too large to be exact in JSON")
        }
        return .number(Double(value))
    }
}

private protocol StringKeyed {}
extension Dictionary: StringKeyed where Key == String {}

private struct JSONKeyedTarget<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let target: JSONEncodingTarget

    var codingPath: [any CodingKey] { target.codingPath }

    func encodeNil(forKey key: Key) { target.member(key).setNull() }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try target.member(key).set(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        target.member(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        target.member(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { target }

    func superEncoder(forKey key: Key) -> any Encoder { target.member(key) }
}

private struct JSONUnkeyedTarget: UnkeyedEncodingContainer {
    let target: JSONEncodingTarget

    var codingPath: [any CodingKey] { target.codingPath }
    var count: Int { target.count }

    func encodeNil() { target.element().setNull() }

    func encode<T: Encodable>(_ value: T) throws { try target.element().set(value) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        target.element().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { target.element().unkeyedContainer() }

    func superEncoder() -> any Encoder { target.element() }
}

private struct JSONSingleTarget: SingleValueEncodingContainer {
    let target: JSONEncodingTarget

    var codingPath: [any CodingKey] { target.codingPath }

    func encodeNil() { target.setNull() }

    func encode<T: Encodable>(_ value: T) throws { try target.set(value) }
}

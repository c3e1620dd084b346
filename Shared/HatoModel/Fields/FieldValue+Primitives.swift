// Field values with a JSON type.

extension String: FieldValue {
    public static var schema: JSONObject { ["type": "string"] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .string(let text) = json else { throw .wrongType("a string", json) }
        self = text
    }

    public var json: JSONValue { .string(self) }
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension Bool: FieldValue {
    public static var schema: JSONObject { ["type": "boolean"] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .bool(let value) = json else { throw .wrongType("true or false", json) }
        self = value
    }

    public var json: JSONValue { .bool(self) }
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension Double: FieldValue {
    public static var schema: JSONObject { ["type": "number"] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .number(let number) = json else { throw .wrongType("a number", json) }
        self = number
    }

    public var json: JSONValue { .number(self) }
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

// Integers that a double represents exactly: below 2^53.
extension FixedWidthInteger where Self: FieldValue {
    public static var schema: JSONObject { ["type": "integer"] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .number(let number) = json else { throw .wrongType("an integer", json) }
        guard let integer = number.exactInteger, let value = Self(exactly: integer) else {
            let least = Swift.max(Int64(clamping: Self.min), -(1 << 53) + 1)
            let most = Swift.min(Int64(clamping: Self.max), 1 << 53 - 1)
            throw FieldError(.wrongType, "must be an integer from \(least) to \(most)")
        }
        self = value
    }

    public var json: JSONValue { .number(Double(self)) }
}

extension Int: FieldValue {
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension Int64: FieldValue {
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension UInt64: FieldValue {
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension UInt32: FieldValue {
    public func write(into writer: inout JSONWriter) { writer.write(UInt64(self)) }
}

extension UInt8: FieldValue {
    public func write(into writer: inout JSONWriter) { writer.write(UInt64(self)) }
}

extension JSONValue: FieldValue {
    public static var schema: JSONObject { [:] }
    public init(json: JSONValue, unknown: UnknownFields) { self = json }
    public var json: JSONValue { self }
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension JSONObject: FieldValue {
    public static var schema: JSONObject { ["type": "object"] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .object(let object) = json else { throw .wrongType("an object", json) }
        self = object
    }

    public var json: JSONValue { .object(self) }
    public func write(into writer: inout JSONWriter) { writer.write(self) }
}

extension Array: FieldValue where Element: FieldValue {
    public static var schema: JSONObject { ["type": "array", "items": .object(Element.schema)] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .array(let elements) = json else { throw .wrongType("an array", json) }
        self.init()
        reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            do { append(try Element(json: element, unknown: unknown)) } catch { throw error.below("\(index)") }
        }
    }

    public var json: JSONValue { .array(map(\.json)) }

    public func write(into writer: inout JSONWriter) {
        writer.beginArray()
        for element in self { element.write(into: &writer) }
        writer.endArray()
    }
}

/// Written in the order of the keys' bytes: equal dictionaries have equal texts.
extension Dictionary: FieldValue where Key == String, Value: FieldValue {
    public static var schema: JSONObject { ["type": "object", "additionalProperties": .object(Value.schema)] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard case .object(let object) = json else { throw .wrongType("an object", json) }
        self.init(minimumCapacity: object.count)
        for (index, member) in object.members.enumerated() {
            do {
                self[member.name] = try Value(json: member.value, unknown: unknown)
            } catch {
                throw error.below(member.name)
            }
            // Names of other code points can be equal: one would take the place of the other one.
            guard count == index + 1 else {
                throw FieldError(.wrongType, "is equal to another name, of other code points").below(member.name)
            }
        }
    }

    public var json: JSONValue {
        .object(JSONObject(uniqueMembers: sorted.map { JSONObject.Member($0.key, $0.value.json) }))
    }

    public func write(into writer: inout JSONWriter) {
        writer.beginObject()
        for (name, value) in sorted {
            writer.member(name)
            value.write(into: &writer)
        }
        writer.endObject()
    }

    private var sorted: [(key: String, value: Value)] {
        sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }
}

/// The JSON Schema (draft 7) of a type, found by decoding it with a decoder that takes notes.
///
/// A sample (the encoded example of a method) feeds types that refuse made-up values; what it does not hold is made up.
/// Types whose JSON has several shapes say their schema themselves.
public protocol JSONSchemaProviding {
    static var jsonSchema: JSONObject { get }
}

public enum JSONSchema {
    public static func of<T: Decodable>(_ type: T.Type, sample: JSONValue? = nil) -> JSONObject {
        JSONSchemaRecord.of(type, sample: sample, depth: 0).schema
    }
}

/// A schema and, where one could be made, a value of the type, so that decoding of what holds it can go on.
struct JSONSchemaRecord<T> {
    var schema: JSONObject
    var value: T?
}

extension JSONSchemaRecord where T: Decodable {
    /// Types that hold themselves end here.
    private static var depthMax: Int { 12 }

    static func of(_ type: T.Type, sample: JSONValue?, depth: Int) -> JSONSchemaRecord<T> {
        guard depth < depthMax else { return JSONSchemaRecord(schema: [:], value: nil) }
        if let provider = type as? any JSONSchemaProviding.Type {
            return JSONSchemaRecord(schema: provider.jsonSchema, value: decoded(type, sample))
        }
        if let scalar = scalar(type, sample) { return scalar }
        if let holder = type as? any JSONSchemaHolder.Type {
            let (schema, empty) = holder.schema(sample: sample, depth: depth + 1)
            return JSONSchemaRecord(schema: schema, value: decoded(type, sample) ?? empty as? T)
        }
        let choices = rawValues(of: type)
        if !choices.isEmpty {
            let schema: JSONObject = ["type": "string", "enum": .array(choices.map { .string($0) })]
            return JSONSchemaRecord(schema: schema, value: decoded(type, sample) ?? decoded(type, .string(choices[0])))
        }
        let recorder = JSONSchemaRecorder(sample: sample, depth: depth)
        let value = try? T(from: recorder)
        return JSONSchemaRecord(schema: recorder.schema, value: value)
    }

    private static func decoded(_ type: T.Type, _ sample: JSONValue?) -> T? {
        guard let sample else { return nil }
        return try? JSONCoding.decode(type, from: sample, unknown: .ignored)
    }

    private static func scalar(_ type: T.Type, _ sample: JSONValue?) -> JSONSchemaRecord<T>? {
        let name: JSONValue
        let madeUp: JSONValue
        switch type {
        case is String.Type: (name, madeUp) = ("string", "")
        case is Bool.Type: (name, madeUp) = ("boolean", false)
        case is Double.Type, is Float.Type: (name, madeUp) = ("number", 0)
        case is any FixedWidthInteger.Type: (name, madeUp) = ("integer", 0)
        case is JSONObject.Type: (name, madeUp) = ("object", [:])
        case is JSONValue.Type: return JSONSchemaRecord(schema: [:], value: (sample ?? .null) as? T)
        default: return nil
        }
        return JSONSchemaRecord(schema: ["type": name], value: decoded(type, sample) ?? decoded(type, madeUp))
    }
}

/// Generic types whose schema is made of that of what they hold, also when they are empty.
private protocol JSONSchemaHolder {
    /// The schema, and a value that holds nothing.
    static func schema(sample: JSONValue?, depth: Int) -> (JSONObject, Any)
}

extension Array: JSONSchemaHolder where Element: Decodable {
    fileprivate static func schema(sample: JSONValue?, depth: Int) -> (JSONObject, Any) {
        let items = JSONSchemaRecord.of(Element.self, sample: sample?.array?.first, depth: depth).schema
        return (["type": "array", "items": .object(items)], [Element]())
    }
}

extension Set: JSONSchemaHolder where Element: Decodable {
    fileprivate static func schema(sample: JSONValue?, depth: Int) -> (JSONObject, Any) {
        let items = JSONSchemaRecord.of(Element.self, sample: sample?.array?.first, depth: depth).schema
        return (["type": "array", "items": .object(items), "uniqueItems": true], Set<Element>())
    }
}

extension Dictionary: JSONSchemaHolder where Key: Decodable, Value: Decodable {
    fileprivate static func schema(sample: JSONValue?, depth: Int) -> (JSONObject, Any) {
        let first = sample?.object?.members.first?.value
        let values = JSONSchemaRecord<Value>.of(Value.self, sample: first, depth: depth).schema
        return (["type": "object", "additionalProperties": .object(values)], [Key: Value]())
    }
}

extension Optional: JSONSchemaHolder where Wrapped: Decodable {
    fileprivate static func schema(sample: JSONValue?, depth: Int) -> (JSONObject, Any) {
        let wrapped = JSONSchemaRecord<Wrapped>.of(Wrapped.self, sample: sample, depth: depth).schema
        return (wrapped, Wrapped?.none as Any)
    }
}

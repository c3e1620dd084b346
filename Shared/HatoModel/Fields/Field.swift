/// One field of an object: its name, whether it is required, its meaning, an example, and its coding.
///
/// The factories are inlined, so that the compiler specialises the coding of each field.
public struct Field<Root: Sendable>: Sendable {
    /// The key path of a stored property.
    public typealias Property<Value> = any WritableKeyPath<Root, Value> & Sendable

    /// The name of the member.
    public let name: String
    /// The meaning, with unit and bounds: one or two sentences, the last without a full stop. Empty in records, which
    /// appear in no document.
    public let meaning: String
    /// A valid value, where the example of the method omits the field.
    public let example: JSONValue?
    let isRequired: Bool
    let schema: @Sendable () -> JSONObject
    let set: @Sendable (inout Root, JSONValue, UnknownFields) throws(FieldError) -> Void
    /// Nil when the field is omitted.
    let get: @Sendable (Root) -> JSONValue?
    let write: @Sendable (Root, inout JSONWriter) -> Void

    /// A field that must be present.
    @inline(__always)
    public static func required<Value: FieldValue>(
        _ name: String, _ path: Property<Value>, _ meaning: String = "", example: Value? = nil
    ) -> Field {
        let property = StoredProperty(path)
        return Field(
            name: name, meaning: meaning, example: example?.json, isRequired: true, schema: { Value.schema },
            set: { root, json, unknown throws(FieldError) in
                property.set(&root, to: try Value(json: json, unknown: unknown))
            },
            get: { property.get($0).json },
            write: { root, writer in
                writer.member(name)
                property.get(root).write(into: &writer)
            })
    }

    /// A field that may be absent; null means absent.
    @inline(__always)
    public static func optional<Value: FieldValue>(
        _ name: String, _ path: Property<Value?>, _ meaning: String = "", example: Value? = nil
    ) -> Field {
        let property = StoredProperty(path)
        return Field(
            name: name, meaning: meaning, example: example?.json, isRequired: false, schema: { Value.schema },
            set: { root, json, unknown throws(FieldError) in
                if case .null = json { return property.set(&root, to: nil) }
                property.set(&root, to: try Value(json: json, unknown: unknown))
            },
            get: { property.get($0)?.json },
            write: { root, writer in
                guard let value = property.get(root) else { return }
                writer.member(name)
                value.write(into: &writer)
            })
    }

    /// A field that may be absent and whose null is an ordinary value.
    @inline(__always)
    public static func optionalJSON(
        _ name: String, _ path: Property<JSONValue?>, _ meaning: String = "",
        example: JSONValue? = nil
    ) -> Field {
        let property = StoredProperty(path)
        return Field(
            name: name, meaning: meaning, example: example, isRequired: false, schema: { [:] },
            set: { root, json, _ throws(FieldError) in property.set(&root, to: json) },
            get: { property.get($0) },
            write: { root, writer in
                guard let value = property.get(root) else { return }
                writer.member(name)
                writer.write(value)
            })
    }

    /// A field that is always written, as null when there is no value; it may be absent when read.
    @inline(__always)
    public static func nullable<Value: FieldValue>(
        _ name: String, _ path: Property<Value?>, _ meaning: String = ""
    ) -> Field {
        let property = StoredProperty(path)
        let present = Field.optional(name, path, meaning)
        return Field(
            name: name, meaning: meaning, example: nil, isRequired: false, schema: { Value.schema.orNull },
            set: present.set,
            get: { property.get($0)?.json ?? .null },
            write: { root, writer in
                writer.member(name)
                if let value = property.get(root) { value.write(into: &writer) } else { writer.writeNull() }
            })
    }

    /// The same field for an object that has `Root` at `path`.
    func inlined<Outer>(at path: any WritableKeyPath<Outer, Root> & Sendable) -> Field<Outer> {
        let (set, get, write) = (set, get, write)
        return Field<Outer>(
            name: name, meaning: meaning, example: example, isRequired: isRequired, schema: schema,
            set: { outer, json, unknown throws(FieldError) in try set(&outer[keyPath: path], json, unknown) },
            get: { get($0[keyPath: path]) },
            write: { outer, writer in write(outer[keyPath: path], &writer) })
    }

    /// The schema of the value, with the meaning of the field as its description and the example as one of `examples`.
    var describedSchema: JSONObject {
        var schema = schema()
        if !meaning.isEmpty { schema["description"] = .string(meaning) }
        if let example { schema["examples"] = [example] }
        return schema
    }
}

extension JSONObject {
    /// The schema of the same values and null.
    fileprivate var orNull: JSONObject {
        guard let type = self["type"] else { return self }
        var schema = self
        schema["type"] = [type, "null"]
        return schema
    }
}

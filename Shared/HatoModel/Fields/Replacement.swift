/// A new value for something that can be removed: null removes it.
public enum Replacement<Value: FieldValue>: Sendable {
    /// What was there goes.
    case removed
    /// It takes the place of what was there.
    case value(Value)

    /// The new value; nil when what was there goes.
    public var value: Value? {
        switch self {
        case .removed: nil
        case .value(let value): value
        }
    }
}

extension Replacement: Equatable where Value: Equatable {}
extension Replacement: Hashable where Value: Hashable {}

extension Field {
    /// A field that may be absent: then nothing changes. Null removes what is there.
    @inline(__always)
    public static func replacing<Value: FieldValue>(
        _ name: String, _ path: Property<Replacement<Value>?>, _ meaning: String = "", example: Value? = nil
    ) -> Field {
        let property = StoredProperty(path)
        return Field(
            name: name, meaning: meaning, example: example?.json, isRequired: false, schema: { Value.schema },
            set: { root, json, unknown throws(FieldError) in
                if case .null = json { return property.set(&root, to: .removed) }
                property.set(&root, to: .value(try Value(json: json, unknown: unknown)))
            },
            get: { property.get($0).map { $0.value?.json ?? .null } },
            write: { root, writer in
                guard let replacement = property.get(root) else { return }
                writer.member(name)
                if let value = replacement.value { value.write(into: &writer) } else { writer.writeNull() }
            })
    }
}

/// An object with a table of fields: the one declaration for decoding, encoding, schema and documents.
///
/// ```swift
/// public struct Result: FieldObject {
///     public var version: UInt64
///     public static let fields = Fields(
///         blank: Self(version: 0),
///         .required("version", \.version, "The version of the commit"))
/// }
/// ```
public protocol FieldObject: FieldValue {
    static var fields: Fields<Self> { get }
}

/// The fields of an object, in the order they are written. At most 64.
public struct Fields<Root: Sendable>: Sendable {
    /// The initial value of decoding; every required field is then set, an optional field is set or stays as here.
    public let blank: Root
    /// The fields in the order they are written.
    public let list: [Field<Root>]
    /// A bit for each required field, by position.
    private let required: UInt64
    /// The names in the order of `list`. Where this code is not specialised, as for the records of services, a look at
    /// a field's name copies the field.
    private let namesInOrder: [String]

    /// A table of fields.
    public init(blank: Root, _ fields: Field<Root>...) { self.init(blank: blank, list: fields) }

    private init(blank: Root, list: [Field<Root>]) {
        precondition(list.count <= 64, "an object has at most 64 fields")
        self.blank = blank
        self.list = list
        namesInOrder = list.map(\.name)
        required = list.enumerated().reduce(0) { $1.element.isRequired ? $0 | 1 << UInt64($1.offset) : $0 }
    }

    /// The names of all fields.
    public var names: Set<String> { Set(list.map(\.name)) }

    /// These fields and, in the same JSON object, those of the object at `path`.
    public func inlining<Inner: FieldObject>(_ path: any WritableKeyPath<Root, Inner> & Sendable) -> Fields {
        Fields(blank: blank, list: list + Inner.fields.list.map { $0.inlined(at: path) })
    }

    /// Reads an object. Throws `FieldError` for a value that is no object, for a missing or wrong field, and for a
    /// member without a field if these are rejected; the first in the order of the members.
    func read(_ json: JSONValue, unknown: UnknownFields) throws(FieldError) -> Root {
        guard case .object(let object) = json else { throw .wrongType("an object", json) }
        var root = blank
        var seen: UInt64 = 0
        // Members are usually in the order of the table.
        var expected = 0
        for member in object.members {
            guard let index = position(of: member.name, expected: expected) else {
                if unknown == .ignored { continue }
                throw unknownField(member.name)
            }
            expected = index &+ 1
            do { try list[index].set(&root, member.value, unknown) } catch { throw error.below(member.name) }
            seen |= 1 << UInt64(truncatingIfNeeded: index)
        }
        let missing = required & ~seen
        guard missing == 0 else { throw .missing(namesInOrder[missing.trailingZeroBitCount]) }
        return root
    }

    @inline(__always)
    private func position(of name: String, expected: Int) -> Int? {
        var index = expected
        for _ in 0..<namesInOrder.count {
            if index >= namesInOrder.count { index = 0 }
            if namesInOrder[index].hasSameBytes(as: name) { return index }
            index &+= 1
        }
        return nil
    }

    private func unknownField(_ name: String) -> FieldError {
        let known = list.map(\.name).sorted().joined(separator: ", ")
        return FieldError(.unknownField, "is no known parameter" + (known.isEmpty ? "" : "; known are \(known)"))
            .below(name)
    }
}

extension FieldObject {
    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        self = try Self.fields.read(json, unknown: unknown)
    }

    public var json: JSONValue { .object(members) }

    /// The members of the object.
    public var members: JSONObject {
        var object = JSONObject()
        for field in Self.fields.list {
            if let value = field.get(self) { object.append(field.name, value) }
        }
        return object
    }

    public func write(into writer: inout JSONWriter) {
        writer.beginObject()
        writeMembers(into: &writer)
        writer.endObject()
    }

    /// Writes the members into an object that has begun.
    public func writeMembers(into writer: inout JSONWriter) {
        let list = Self.fields.list
        // By index: a copy of a field would retain its closures.
        for index in list.indices { list[index].write(self, &writer) }
    }

    public static var schema: JSONObject {
        var schema: JSONObject = [
            "type": "object",
            "properties": .object(
                JSONObject(uniqueMembers: fields.list.map { JSONObject.Member($0.name, .object($0.describedSchema)) })),
        ]
        let required = fields.list.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { schema["required"] = .array(required) }
        schema["additionalProperties"] = false
        return schema
    }
}

/// The type of a field: it has a JSON coding and a schema.
///
/// Primitives, arrays, dictionaries with text keys and JSON itself are field values. Other types are objects with a
/// table of fields (`FieldObject`), enumerations (`FieldChoice`) or validated texts (`FieldText`).
public protocol FieldValue: Sendable {
    /// The JSON Schema (draft 7) of the value.
    static var schema: JSONObject { get }
    /// Reads the value. Throws `FieldError`, whose path starts at this value.
    ///
    /// - Parameter unknown: how to treat members without a field, here and below.
    init(json: JSONValue, unknown: UnknownFields) throws(FieldError)
    var json: JSONValue { get }
    /// Writes the value as one JSON value.
    func write(into writer: inout JSONWriter)
}

/// How to treat members of an object that have no field.
public enum UnknownFields: Sendable {
    /// Params: a typo must not be silent.
    case rejected
    /// Results, notifications and records: the writer may be newer than the reader.
    case ignored
}

extension FieldValue {
    public func write(into writer: inout JSONWriter) { writer.write(json) }
}

/// One of several texts: the raw values of an enum.
public protocol FieldChoice: FieldValue, CaseIterable, RawRepresentable where RawValue == String {}

extension FieldChoice {
    public static var schema: JSONObject {
        ["type": "string", "enum": .array(allCases.map { .string($0.rawValue) })]
    }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        let text = try String(json: json, unknown: unknown)
        guard let choice = Self(rawValue: text) else {
            throw FieldError(.wrongType, "must be one of \(Self.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self = choice
    }

    public var json: JSONValue { .string(rawValue) }
    public func write(into writer: inout JSONWriter) { writer.write(rawValue) }
}

/// A text with a format, such as a path: its initialiser validates it.
public protocol FieldText: FieldValue, CustomStringConvertible {
    /// Throws `ArgumentError` when the text has another format.
    init(_ text: String) throws(ArgumentError)
}

extension FieldText {
    public static var schema: JSONObject { ["type": "string"] }

    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        let text = try String(json: json, unknown: unknown)
        do { self = try Self(text) } catch { throw FieldError(error) }
    }

    public var json: JSONValue { .string(description) }
    public func write(into writer: inout JSONWriter) { writer.write(description) }
}

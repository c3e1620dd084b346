import HatoIdentity
import HatoModel

/// A row that this version does not write: damaged, or modified by other software. It names the record, never its
/// contents.
struct RecordError: Error, Sendable, Hashable, CustomStringConvertible {
    var record: String
    var problem: String
    var description: String { "damaged \(record) record: \(problem)" }
}

/// Reads a record, a JSON object, strictly: every member must be known, and required members must exist.
struct RecordReader {
    private let record: String
    private var members: JSONObject

    init(_ record: String, _ bytes: [UInt8]) throws {
        self.record = record
        guard case .object(let object)? = try? JSONParser.parse(bytes) else {
            throw RecordError(record: record, problem: "no JSON object")
        }
        members = object
    }

    mutating func text(_ name: String) throws -> String { try required(name, optionalText(name)) }

    mutating func optionalText(_ name: String) throws -> String? {
        try take(name) { $0.string }
    }

    /// Milliseconds since 1970, up to the year 9999: the difference of two times is always an `Int64`.
    mutating func time(_ name: String) throws -> Int64 { try required(name, optionalTime(name)) }

    mutating func optionalTime(_ name: String) throws -> Int64? {
        try optionalInteger(name, below: 253_402_300_800_000)
    }

    /// Seconds since 1970, up to the year 9999.
    mutating func seconds(_ name: String) throws -> Int64 {
        try required(name, optionalInteger(name, below: 253_402_300_800))
    }

    private mutating func optionalInteger(_ name: String, below end: Int64) throws -> Int64? {
        try take(name) { value in
            guard let integer = value.number.flatMap({ Int64(exactly: $0) }), (0..<end).contains(integer) else {
                return nil
            }
            return integer
        }
    }

    /// False when the member is absent.
    mutating func flag(_ name: String) throws -> Bool { try take(name) { $0.bool } ?? false }

    mutating func bytes(_ name: String, count: Int) throws -> [UInt8] {
        try required(name, optionalBytes(name, count: count))
    }

    mutating func optionalBytes(_ name: String, count: Int) throws -> [UInt8]? {
        try take(name) { value in
            guard let bytes = value.string.flatMap({ Base64URL.decode($0.utf8) }), bytes.count == count else {
                return nil
            }
            return bytes
        }
    }

    func failure(_ name: String) -> RecordError { RecordError(record: record, problem: "member \(name)") }

    /// Called last: a member that was not read is damage too.
    func end() throws {
        if let left = members.members.first {
            throw RecordError(record: record, problem: "unknown member \(left.name)")
        }
    }

    private func required<Value>(_ name: String, _ value: Value?) throws -> Value {
        guard let value else { throw failure(name) }
        return value
    }

    private mutating func take<Value>(_ name: String, _ convert: (JSONValue) -> Value?) throws -> Value? {
        guard let value = members[name] else { return nil }
        guard let converted = convert(value) else { throw failure(name) }
        members[name] = nil
        return converted
    }
}

/// Writes records in the form that `RecordReader` reads; nil and false are omitted.
struct RecordWriter {
    private var members = JSONObject()

    mutating func put(_ name: String, _ text: String?) {
        if let text { members[name] = .string(text) }
    }

    mutating func put(_ name: String, _ integer: Int64?) {
        if let integer { members[name] = .number(Double(integer)) }
    }

    mutating func put(_ name: String, _ flag: Bool) {
        if flag { members[name] = true }
    }

    mutating func put(_ name: String, _ bytes: [UInt8]?) {
        if let bytes { members[name] = .string(Base64URL.encode(bytes)) }
    }

    var bytes: [UInt8] { JSONValue.object(members).encoded }
}

/// Writes and reads the records of services: values with tables of fields, as JSON text, which any tool reads.
///
/// What stores hold is read by later versions, so names of fields and their coding never change; a new field is
/// optional.
public enum RecordCodec {
    /// The bytes of a row.
    public static func encode(_ record: some FieldValue) -> [UInt8] {
        var writer = JSONWriter()
        record.write(into: &writer)
        return writer.bytes
    }

    /// Reads what `encode` wrote. Throws `RecordError` for anything else.
    ///
    /// - Parameters:
    ///   - name: the kind of record, for the error.
    ///   - unknown: how to treat members without a field.
    public static func decode<Record: FieldValue>(
        _: Record.Type, _ bytes: [UInt8], of name: String, unknown: UnknownFields
    ) throws(RecordError) -> Record {
        let json: JSONValue
        do { json = try JSONParser.parse(bytes) } catch { throw RecordError(record: name, problem: "no JSON") }
        do { return try Record(json: json, unknown: unknown) } catch {
            let kind = error.reason == .unknownField ? "unknown member" : "member"
            throw RecordError(record: name, problem: "\(kind) \(error.parameter)")
        }
    }
}

/// A row that this version does not write: damaged, or modified by other software. It names the record, never its
/// contents.
public struct RecordError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of record.
    public var record: String
    /// The member that is wrong, or what else is.
    public var problem: String

    public init(record: String, problem: String = "it cannot be read") {
        self.record = record
        self.problem = problem
    }

    public var description: String { "damaged \(record) record: \(problem)" }
}

// Fields of records, stricter than those of requests: what a service did not write is damage.
extension Field {
    /// True or absent.
    public static func flag(_ name: String, _ path: Property<Bool>) -> Field {
        let field = required(name, path)
        return Field(
            name: name, meaning: "", example: nil, isRequired: false, schema: field.schema, set: field.set,
            get: { $0[keyPath: path] ? .some(.bool(true)) : .none },
            write: { root, writer in if root[keyPath: path] { field.write(root, &writer) } })
    }

    /// Milliseconds since 1970, up to the year 9999: the difference of two times is always an `Int64`.
    public static func time(_ name: String, _ path: Property<Int64>) -> Field {
        required(name, path).numbers(below: endOfSeconds * 1_000)
    }

    /// The same, or absent.
    public static func optionalTime(_ name: String, _ path: Property<Int64?>) -> Field {
        optional(name, path).numbers(below: endOfSeconds * 1_000)
    }

    /// Seconds since 1970, up to the year 9999.
    public static func seconds(_ name: String, _ path: Property<Int64>) -> Field {
        required(name, path).numbers(below: endOfSeconds)
    }

    /// So many bytes, as base64url.
    public static func bytes(_ name: String, _ path: Property<[UInt8]>, count: Int) -> Field {
        Field(
            name: name, meaning: "", example: nil, isRequired: true, schema: { String.schema },
            set: { root, json, _ throws(FieldError) in root[keyPath: path] = try decoded(json, count) },
            get: { .string(Base64.url.encode($0[keyPath: path])) },
            write: { root, writer in
                writer.member(name)
                writer.write(Base64.url.encode(root[keyPath: path]))
            })
    }

    /// The same, or absent.
    public static func optionalBytes(_ name: String, _ path: Property<[UInt8]?>, count: Int) -> Field {
        Field(
            name: name, meaning: "", example: nil, isRequired: false, schema: { String.schema },
            set: { root, json, _ throws(FieldError) in root[keyPath: path] = try decoded(json, count) },
            get: { $0[keyPath: path].map { .string(Base64.url.encode($0)) } },
            write: { root, writer in
                guard let bytes = root[keyPath: path] else { return }
                writer.member(name)
                writer.write(Base64.url.encode(bytes))
            })
    }

    private static func decoded(_ json: JSONValue, _ count: Int) throws(FieldError) -> [UInt8] {
        guard let bytes = json.string.flatMap({ Base64.url.decode($0.utf8) }), bytes.count == count else {
            throw FieldError(.wrongType, "must be \(count) bytes in base64url")
        }
        return bytes
    }

    private static var endOfSeconds: Double { 253_402_300_800 }

    /// The same field for numbers from 0 to below `end`.
    private func numbers(below end: Double) -> Field {
        Field(
            name: name, meaning: meaning, example: example, isRequired: isRequired, schema: schema,
            set: { [set] root, json, unknown throws(FieldError) in
                guard case .number(let number) = json, number >= 0, number < end else {
                    throw FieldError(.wrongType, "must be a time")
                }
                try set(&root, json, unknown)
            },
            get: get, write: write)
    }
}

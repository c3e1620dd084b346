import HatoModel

/// What is stored of a database.
struct DatabaseRecord: Sendable, Hashable {
    var id: DatabaseID
    /// Milliseconds since 1970.
    var createdAt: Int64
    /// The rules text as it was set. A database begins with rules, so there is always one.
    var rules: String

    private static let format: UInt8 = 1

    init(id: DatabaseID, createdAt: Int64, rules: String) {
        self.id = id
        self.createdAt = createdAt
        self.rules = rules
    }

    var encoded: [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(Self.format)
        encoder.append(id.rawValue)
        encoder.append(UInt64(bitPattern: createdAt))
        encoder.append(counted: rules.utf8)
        return encoder.bytes
    }

    /// Throws `RecordError` when the bytes are not what `encoded` writes.
    init(_ bytes: [UInt8]) throws(RecordError) {
        var decoder = ByteDecoder(bytes)
        guard decoder.byte() == Self.format, let id = decoder.uint32(), let createdAt = decoder.uint64(),
            let rules = decoder.counted()
        else { throw RecordError(record: "database") }
        self.init(
            id: DatabaseID(rawValue: id), createdAt: Int64(bitPattern: createdAt),
            rules: String(decoding: rules, as: UTF8.self))
    }
}

/// A stored record is not what this version writes.
struct RecordError: Error, Hashable {
    var record: String
}

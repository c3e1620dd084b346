import HatoModel

/// What is stored of a database.
struct DatabaseRecord: Sendable, Hashable {
    var id: DatabaseID
    /// Milliseconds since 1970.
    var createdAt: Int64
    /// The version of the commit that created it; 0 where that was not noted yet. What was at a version before it was
    /// another database's, which had the same name.
    var firstVersion: UInt64
    /// The rules text as it was set. A database begins with rules, so there is always one.
    var rules: String

    private static let format: UInt8 = 2
    private static let formatWithoutVersion: UInt8 = 1

    init(id: DatabaseID, createdAt: Int64, firstVersion: UInt64, rules: String) {
        self.id = id
        self.createdAt = createdAt
        self.firstVersion = firstVersion
        self.rules = rules
    }

    var encoded: [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(Self.format)
        encoder.append(id.rawValue)
        encoder.append(UInt64(bitPattern: createdAt))
        encoder.append(firstVersion)
        encoder.append(counted: rules.utf8)
        return encoder.bytes
    }

    /// Throws `RecordError` when the bytes are not what `encoded` writes.
    init(_ bytes: [UInt8]) throws(RecordError) {
        var decoder = ByteDecoder(bytes)
        let format = decoder.byte()
        guard format == Self.format || format == Self.formatWithoutVersion, let id = decoder.uint32(),
            let createdAt = decoder.uint64(), let firstVersion = format == Self.format ? decoder.uint64() : 0,
            let rules = decoder.counted()
        else { throw RecordError(record: "database") }
        self.init(
            id: DatabaseID(rawValue: id), createdAt: Int64(bitPattern: createdAt), firstVersion: firstVersion,
            rules: String(decoding: rules, as: UTF8.self))
    }
}

import HatoModel
import HatoStorage
import HatoTree

/// The rows of the onDisconnect writes of connections: one for each path, one for each later small call that changes a
/// large write, and one for each caller that registered a write.
///
/// ```
/// 04 connection 01 number            the caller: `caller`
/// 04 connection 02 id path           the write at a path of a database: `entry`
/// 04 connection 03 id number         a later change of such a write, in the order of the numbers: `amendment`
/// ```
/// The rows are deleted when the connection has ended and its writes are made. So the rows that a start finds belong to
/// connections that ended with the process before it, whose numbers have no meaning any more. Their writes are made,
/// and the rows deleted, before this process accepts its first connection.
enum DisconnectRecord {
    private static let callers: UInt8 = 0x01
    private static let entries: UInt8 = 0x02
    private static let amendments: UInt8 = 0x03
    private static let format: UInt8 = 1

    // MARK: Keys

    static func key(ofCaller number: UInt32, connection: UInt64) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(raw: StoreKeys.disconnects(of: connection))
        encoder.append(callers)
        encoder.append(number)
        return encoder.bytes
    }

    static func key(ofEntryAt path: TreePath, in database: DatabaseID, connection: UInt64) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(raw: StoreKeys.disconnects(of: connection))
        encoder.append(entries)
        encoder.append(database.rawValue)
        encoder.append(raw: path.text.utf8)
        return encoder.bytes
    }

    static func key(ofAmendment number: UInt64, in database: DatabaseID, connection: UInt64) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(raw: StoreKeys.disconnects(of: connection))
        encoder.append(amendments)
        encoder.append(database.rawValue)
        encoder.append(number)
        return encoder.bytes
    }

    enum Key: Hashable {
        case caller(connection: UInt64, number: UInt32)
        case entry(connection: UInt64, database: DatabaseID, path: TreePath)
        case amendment(connection: UInt64, database: DatabaseID, number: UInt64)

        init(_ bytes: [UInt8]) throws {
            var decoder = ByteDecoder(bytes)
            guard decoder.byte() != nil, let connection = decoder.uint64(), let kind = decoder.byte(),
                let number = decoder.uint32()
            else { throw RecordError(record: "on disconnect") }
            switch kind {
            case DisconnectRecord.callers: self = .caller(connection: connection, number: number)
            case DisconnectRecord.entries:
                let path = try TreePath(String(decoding: decoder.rest(), as: UTF8.self))
                self = .entry(connection: connection, database: DatabaseID(rawValue: number), path: path)
            case DisconnectRecord.amendments:
                guard let amendment = decoder.uint64() else { throw RecordError(record: "on disconnect") }
                self = .amendment(
                    connection: connection, database: DatabaseID(rawValue: number), number: amendment)
            default: throw RecordError(record: "on disconnect")
            }
        }
    }

    // MARK: Values

    /// Whether a row is one that this version writes.
    static func canBeRead(_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        let bytes = value.withUnsafeBufferPointer { Array($0) }
        do {
            switch try Key(key.withUnsafeBufferPointer { Array($0) }) {
            case .caller: _ = try decodeCaller(bytes)
            case .entry(_, _, let path): _ = try decodeEntry(bytes, at: path)
            case .amendment(_, _, let number): _ = try decodeAmendment(bytes, number: number)
            }
            return true
        } catch {
            return false
        }
    }

    static func entry(_ node: DeferredNode, by number: UInt32) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(format)
        encoder.append(number)
        var writer = JSONWriter()
        writer.write(node.json)
        encoder.append(raw: writer.bytes)
        return encoder.bytes
    }

    static func decodeEntry(_ bytes: [UInt8], at path: TreePath) throws -> (write: DeferredWrite, number: UInt32) {
        var decoder = ByteDecoder(bytes)
        guard decoder.byte() == format, let number = decoder.uint32() else {
            throw RecordError(record: "on disconnect")
        }
        let json = try JSONParser.parse(Array(decoder.rest()))
        return (DeferredWrite(path: path, kept: json), number)
    }

    static func amendment(_ amendment: DisconnectAmendment) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(format)
        encoder.append(counted: amendment.entryPath.text.utf8)
        encoder.append(counted: amendment.write.path.text.utf8)
        var writer = JSONWriter()
        writer.write(amendment.write.node.json)
        encoder.append(raw: writer.bytes)
        return encoder.bytes
    }

    static func decodeAmendment(_ bytes: [UInt8], number: UInt64) throws -> DisconnectAmendment {
        var decoder = ByteDecoder(bytes)
        guard decoder.byte() == format, let place = decoder.counted(), let path = decoder.counted() else {
            throw RecordError(record: "on disconnect")
        }
        let json = try JSONParser.parse(Array(decoder.rest()))
        let write = DeferredWrite(path: try TreePath(String(decoding: path, as: UTF8.self)), kept: json)
        return DisconnectAmendment(
            number: number, entryPath: try TreePath(String(decoding: place, as: UTF8.self)), write: write)
    }

    /// The end of a token is not kept: a user whose token ended while the service ran is stored as no user.
    static func caller(_ caller: Caller) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(format)
        switch caller {
        case .nobody, .service: encoder.append(UInt8(0))
        case .administrator: encoder.append(UInt8(1))
        case .user(let user):
            encoder.append(UInt8(2))
            encoder.append(counted: user.uid.utf8)
            var writer = JSONWriter()
            writer.write(.object(user.claims))
            encoder.append(raw: writer.bytes)
        case .variable(let members):
            encoder.append(UInt8(3))
            var writer = JSONWriter()
            writer.write(.object(members))
            encoder.append(raw: writer.bytes)
        }
        return encoder.bytes
    }

    static func decodeCaller(_ bytes: [UInt8]) throws -> Caller {
        var decoder = ByteDecoder(bytes)
        guard decoder.byte() == format else { throw RecordError(record: "on disconnect") }
        switch decoder.byte() {
        case 0: return .nobody
        case 1: return .administrator
        case 2:
            guard let uid = decoder.counted(), let claims = try JSONParser.parse(Array(decoder.rest())).object else {
                throw RecordError(record: "on disconnect")
            }
            return .user(Caller.User(uid: String(decoding: uid, as: UTF8.self), claims: claims))
        case 3:
            guard let members = try JSONParser.parse(Array(decoder.rest())).object else {
                throw RecordError(record: "on disconnect")
            }
            return .variable(members)
        default: throw RecordError(record: "on disconnect")
        }
    }
}

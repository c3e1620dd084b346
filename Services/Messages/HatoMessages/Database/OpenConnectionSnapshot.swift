import HatoRPC
import HatoStorage

/// Thrown by a read whose connection has closed: the response could not be sent.
struct ConnectionClosed: Error {}

/// A snapshot that is read as long as a connection is open; for one operation.
final class OpenConnectionSnapshot: StoreSnapshot {
    /// A look at the connection costs nothing beside the rows between two of them.
    private static let rowsBetweenLooks = 128

    private let snapshot: any StoreSnapshot
    private let connection: any ReadingPeer

    var version: UInt64 { snapshot.version }
    var derived: (any StoreDerived)? { snapshot.derived }
    var uncached: any StoreSnapshot { OpenConnectionSnapshot(snapshot.uncached, connection) }

    init(_ snapshot: any StoreSnapshot, _ connection: any ReadingPeer) {
        self.snapshot = snapshot
        self.connection = connection
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try snapshot.get(key) }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        guard !connection.isClosed else { throw ConnectionClosed() }
        var rows = 0
        try snapshot.scan(range, reverse: reverse) { key, value in
            rows += 1
            if rows == Self.rowsBetweenLooks {
                guard !connection.isClosed else { throw ConnectionClosed() }
                rows = 0
            }
            return try visit(key, value)
        }
    }

    func approximateBytes(of range: KeyRange) throws -> UInt64 { try snapshot.approximateBytes(of: range) }
}

/// The connection that waits for the result of a read.
protocol ReadingPeer: Sendable {
    var isClosed: Bool { get }
}

extension RPCConnection: ReadingPeer {}

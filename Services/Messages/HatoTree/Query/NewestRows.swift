import HatoModel
import Synchronization

/// Caches where the last rows of an index begin, so that the next query for as many reads them forwards: the newest
/// rows are in a memtable, a linked list without backward links, so each step back is a search from its head.
///
/// A cached start is only a hint, whatever state of the database is read: newer rows come after it and are read too.
/// When too few rows are left after it, or far too many were added, the rows are read backwards as without it.
public final class NewestRows: Sendable {
    /// Usually some 200 bytes each.
    private static let startsMax = 8_192
    /// Queries for more rows are rare.
    private static let limitMax = 1_000
    /// Longer keys are not cached.
    private static let keyBytesMax = 1_024

    private struct Query: Hashable {
        var collection: [UInt8]
        var limit: Int
    }

    private let starts = Mutex<[Query: [UInt8]]>([:])

    private let limits: ClosedRange<Int>

    /// - Parameter limitMin: fewer rows are found as fast by reading backwards.
    public init(limitMin: Int = 8) { limits = limitMin...Self.limitMax }

    /// The number of rows at the end of an index that a query selects; nil when it selects others.
    func limit(of query: TreeQuery) -> Int? {
        guard case .last(let limit) = query.limit, limits.contains(limit), query.start == nil, query.end == nil else {
            return nil
        }
        return limit
    }

    /// The cached first of the last `limit` rows of an index.
    func start(of collection: [UInt8], _ limit: Int) -> [UInt8]? {
        starts.withLock { $0[Query(collection: collection, limit: limit)] }
    }

    /// Evicts a start that was of no use.
    func forget(startOf collection: [UInt8], _ limit: Int) {
        starts.withLock { $0[Query(collection: collection, limit: limit)] = nil }
    }

    func note(_ row: Span<UInt8>, startOf collection: [UInt8], _ limit: Int) {
        guard row.count <= Self.keyBytesMax else { return }
        let row = row.withUnsafeBufferPointer { Array($0) }
        starts.withLock { starts in
            if starts.count >= Self.startsMax { starts = [:] }
            starts[Query(collection: collection, limit: limit)] = row
        }
    }
}

extension QueryRunner {
    /// Adds the last rows of an index, read from their cached start; returns false, without adding any, when that is
    /// not possible.
    func addNewest(of collection: [UInt8], upTo upper: [UInt8], to found: inout Found) throws -> Bool {
        guard let newest, let limit = newest.limit(of: found.query), found.sortKeys.isEmpty,
            let start = newest.start(of: collection, limit)
        else { return false }
        let tooMany = 4 * limit
        var sortKeys: [SortKey] = []
        sortKeys.reserveCapacity(2 * limit)
        var rows: [UInt8] = []
        var ends = [0]
        var isPlain = true
        try nodes.reader.scan(lower: start, upper: upper, reverse: false) { row, _ in
            guard let entry = IndexKeyCodec.decode(row, from: collection.count) else {
                throw TreeError.corrupted("an index row that cannot be read")
            }
            // The order of truncated texts may differ from the order of their rows.
            if entry.isTruncated || sortKeys.count == tooMany {
                isPlain = false
                return .stop
            }
            sortKeys.append(entry.sortKey)
            row.withUnsafeBufferPointer { rows.append(contentsOf: $0) }
            ends.append(rows.count)
            return .next
        }
        guard isPlain, sortKeys.count >= limit else {
            // The backward read that follows caches a new start, if it finds one. Otherwise each query would read from
            // here in vain.
            newest.forget(startOf: collection, limit)
            return false
        }
        let first = sortKeys.count - limit
        // Not each time, since other queries run at the same time. But when the start row is gone, rows have moved to
        // the end, as in a list that is ordered by its last message: every query would step over their tombstones, more
        // each time.
        let isGone = !rows.span.extracting(0..<ends[1]).isEqual(to: start.span)
        if isGone || first > limit / 2 {
            let next = first > limit / 2 ? first : 0
            newest.note(rows.span.extracting(ends[next]..<ends[next + 1]), startOf: collection, limit)
        }
        for sortKey in sortKeys[first...].reversed() { try found.add(sortKey) }
        return true
    }
}

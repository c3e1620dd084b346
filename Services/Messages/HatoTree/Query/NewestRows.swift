import HatoModel
import Synchronization

/// Remembers where the last rows of an index begin, so that the next query for as many reads them forwards: what is
/// newest stands in a memtable, whose list has no way back, so that each step back is a search from its top.
///
/// A place is but a hint, whatever state of the database is read: what came since lies behind it and is read with the
/// rest. When too few rows are left behind it, or far too many have come, the rows are read backwards as without it.
public final class NewestRows: Sendable {
    /// Some 200 bytes each, as a rule.
    private static let startsMax = 8_192
    /// Of more rows, nobody asks often.
    private static let limitMax = 1_000
    /// Longer keys are not remembered.
    private static let keyBytesMax = 1_024

    private struct Query: Hashable {
        var collection: [UInt8]
        var limit: Int
    }

    private let starts = Mutex<[Query: [UInt8]]>([:])

    private let limits: ClosedRange<Int>

    /// - Parameter limitMin: fewer rows are found as fast going back.
    public init(limitMin: Int = 8) { limits = limitMin...Self.limitMax }

    /// How many rows of the end of an index a query asks for; nil when it asks for something else.
    func limit(of query: TreeQuery) -> Int? {
        guard case .last(let limit) = query.limit, limits.contains(limit), query.start == nil, query.end == nil else {
            return nil
        }
        return limit
    }

    /// The first of the last `limit` rows of an index, as they were.
    func start(of collection: [UInt8], _ limit: Int) -> [UInt8]? {
        starts.withLock { $0[Query(collection: collection, limit: limit)] }
    }

    /// What is remembered has told nothing.
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
    /// Adds the last rows of an index, read from where they began the last time; false when that does not tell them,
    /// and nothing was added.
    func addNewest(of collection: [UInt8], upTo upper: [UInt8], to found: inout Found) throws -> Bool {
        guard let newest, let limit = newest.limit(of: found.query), found.places.isEmpty,
            let start = newest.start(of: collection, limit)
        else { return false }
        let tooMany = 4 * limit
        var places: [SortPlace] = []
        places.reserveCapacity(2 * limit)
        var rows: [UInt8] = []
        var ends = [0]
        var isPlain = true
        try nodes.reader.scan(lower: start, upper: upper, reverse: false) { row, _ in
            guard let entry = IndexKeyCodec.decode(row, from: collection.count) else {
                throw TreeError.corrupted("an index row that cannot be read")
            }
            // What is cut off orders some rows otherwise than they stand.
            if entry.isTruncated || places.count == tooMany {
                isPlain = false
                return .stop
            }
            places.append(entry.place)
            row.withUnsafeBufferPointer { rows.append(contentsOf: $0) }
            ends.append(rows.count)
            return .next
        }
        guard isPlain, places.count >= limit else {
            // Whoever now reads them backwards notes where they begin, if that tells it. Else each look would read
            // from here for nothing.
            newest.forget(startOf: collection, limit)
            return false
        }
        let first = places.count - limit
        // Not each time: others ask at the same time. But where it began is gone, rows have moved to the end, as a
        // list does that is ordered by its last message: what is left of them would be stepped over by every look,
        // more each time.
        let isGone = !rows.span.extracting(0..<ends[1]).isEqual(to: start.span)
        if isGone || first > limit / 2 {
            let next = first > limit / 2 ? first : 0
            newest.note(rows.span.extracting(ends[next]..<ends[next + 1]), startOf: collection, limit)
        }
        for place in places[first...].reversed() { try found.add(place) }
        return true
    }
}

/// Rows in key order as a value: copying it is cheap, and a copy never sees later changes.
///
/// A list of chunks of at most 256 rows. Changing a row copies its chunk (when a copy of the whole shares it) and the
/// list of chunks; with a million rows that is some tens of microseconds a group of commits.
struct SortedRows: Sendable {
    private struct Chunk {
        var keys: [[UInt8]] = []
        var values: [[UInt8]] = []
    }

    /// A row's position, or the position at which it would be inserted.
    private struct Position {
        var chunk: Int
        var row: Int
        var isThere: Bool
    }

    private static let chunkRowsMax = 256

    /// No chunk is empty.
    private var chunks: [Chunk] = []
    private(set) var count = 0

    func value(of key: Span<UInt8>) -> [UInt8]? {
        let position = position(of: key)
        return position.isThere ? chunks[position.chunk].values[position.row] : nil
    }

    mutating func set(_ key: [UInt8], to value: [UInt8]) {
        let position = position(of: key.span)
        if position.isThere {
            chunks[position.chunk].values[position.row] = value
            return
        }
        count += 1
        guard position.chunk < chunks.count else {
            // Past the last chunk, where rows in rising order arrive: a chunk is filled before the next begins.
            if let last = chunks.indices.last, chunks[last].keys.count < Self.chunkRowsMax {
                chunks[last].keys.append(key)
                chunks[last].values.append(value)
            } else {
                chunks.append(Chunk(keys: [key], values: [value]))
            }
            return
        }
        chunks[position.chunk].keys.insert(key, at: position.row)
        chunks[position.chunk].values.insert(value, at: position.row)
        if chunks[position.chunk].keys.count > Self.chunkRowsMax { split(position.chunk) }
    }

    mutating func remove(_ key: Span<UInt8>) {
        let position = position(of: key)
        if position.isThere { removeRows(position.row..<position.row + 1, ofChunk: position.chunk) }
    }

    mutating func remove(_ range: KeyRange) {
        guard !range.isEmpty else { return }
        let lower = position(of: range.lower.span)
        let upper = range.upper.map { position(of: $0.span) } ?? Position(chunk: chunks.count, row: 0, isThere: false)
        if lower.chunk == upper.chunk {
            if lower.row < upper.row { removeRows(lower.row..<upper.row, ofChunk: lower.chunk) }
            return
        }
        if upper.chunk < chunks.count { removeRows(0..<upper.row, ofChunk: upper.chunk) }
        for chunk in lower.chunk + 1..<max(upper.chunk, lower.chunk + 1) { count -= chunks[chunk].keys.count }
        chunks.removeSubrange(lower.chunk + 1..<max(upper.chunk, lower.chunk + 1))
        removeRows(lower.row..<chunks[lower.chunk].keys.count, ofChunk: lower.chunk)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (Span<UInt8>, Span<UInt8>) throws -> ScanStep
    ) rethrows {
        if range.isEmpty { return }
        if reverse { try scanBackwards(range, visit) } else { try scanForwards(range, visit) }
    }

    private func scanForwards(_ range: KeyRange, _ visit: (Span<UInt8>, Span<UInt8>) throws -> ScanStep) rethrows {
        var position = position(of: range.lower.span)
        while let (key, value) = row(at: position) {
            if let upper = range.upper, !key.span.precedes(upper.span) { return }
            switch try visit(key.span, value.span) {
            case .next: step(&position)
            case .stop: return
            case .seek(let target):
                if key.span.precedes(target.span) { position = self.position(of: target.span) } else { step(&position) }
            }
        }
    }

    private func scanBackwards(_ range: KeyRange, _ visit: (Span<UInt8>, Span<UInt8>) throws -> ScanStep) rethrows {
        var position: Position? = before(
            range.upper.map { self.position(of: $0.span) } ?? Position(chunk: chunks.count, row: 0, isThere: false))
        while let here = position, let (key, value) = row(at: here) {
            if key.span.precedes(range.lower.span) { return }
            switch try visit(key.span, value.span) {
            case .next: position = before(here)
            case .stop: return
            case .seek(let target):
                guard target.span.precedes(key.span) else {
                    position = before(here)
                    continue
                }
                let found = self.position(of: target.span)
                position = found.isThere ? found : before(found)
            }
        }
    }

    // MARK: Positions

    /// The position of the first row whose key is not before `key`.
    private func position(of key: Span<UInt8>) -> Position {
        // The first chunk whose last key is not before `key`.
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            let keys = chunks[middle].keys
            if keys[keys.count - 1].compare(key) < 0 { low = middle + 1 } else { high = middle }
        }
        guard low < chunks.count else { return Position(chunk: low, row: 0, isThere: false) }
        let chunk = low
        let keys = chunks[chunk].keys
        (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle].compare(key) < 0 { low = middle + 1 } else { high = middle }
        }
        return Position(chunk: chunk, row: low, isThere: low < keys.count && keys[low].compare(key) == 0)
    }

    private func row(at position: Position) -> (key: [UInt8], value: [UInt8])? {
        guard position.chunk < chunks.count else { return nil }
        return (chunks[position.chunk].keys[position.row], chunks[position.chunk].values[position.row])
    }

    private func step(_ position: inout Position) {
        position.row += 1
        if position.row == chunks[position.chunk].keys.count {
            position = Position(chunk: position.chunk + 1, row: 0, isThere: true)
        }
    }

    private func before(_ position: Position) -> Position? {
        if position.row > 0 { return Position(chunk: position.chunk, row: position.row - 1, isThere: true) }
        if position.chunk == 0 { return nil }
        return Position(chunk: position.chunk - 1, row: chunks[position.chunk - 1].keys.count - 1, isThere: true)
    }

    // MARK: Chunks

    private mutating func split(_ chunk: Int) {
        let half = chunks[chunk].keys.count / 2
        let upper = Chunk(keys: Array(chunks[chunk].keys[half...]), values: Array(chunks[chunk].values[half...]))
        chunks[chunk].keys.removeSubrange(half...)
        chunks[chunk].values.removeSubrange(half...)
        chunks.insert(upper, at: chunk + 1)
    }

    private mutating func removeRows(_ rows: Range<Int>, ofChunk chunk: Int) {
        count -= rows.count
        if rows.count == chunks[chunk].keys.count {
            chunks.remove(at: chunk)
            return
        }
        chunks[chunk].keys.removeSubrange(rows)
        chunks[chunk].values.removeSubrange(rows)
    }
}

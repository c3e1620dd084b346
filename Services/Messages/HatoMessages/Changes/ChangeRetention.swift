import HatoStorage

/// Decides which change records are too old to keep: by their age, and by the bytes of all of them.
struct ChangeRetention: Sendable {
    var ageMsMax: Int64
    var bytesMax: UInt64

    init(_ limits: MessagesLimits) {
        ageMsMax = Int64(limits.changeAgeHoursMax.clamped(to: MessagesLimits.hours)) * 3_600_000
        bytesMax = UInt64(max(0, limits.changeBytesMax))
    }

    /// The newest version whose record may go; nil: all are kept.
    func cut(_ store: any Store, now: Int64) throws -> UInt64? {
        let kept = store.keptCommits
        let newest = store.version
        guard let oldest = kept.oldest, oldest <= newest else { return nil }
        let bytesCut = bytesCut(kept.bytes, oldest, newest)
        do {
            let ageCut = try ageCut(store, oldest, newest, before: now - ageMsMax)
            return [bytesCut, ageCut].compactMap { $0 }.max()
        } catch {
            // The limit of bytes needs no record.
            guard let bytesCut else { throw error }
            return bytesCut
        }
    }

    /// Records are taken to be of one size: after a few rounds what is left fits.
    private func bytesCut(_ bytes: UInt64, _ oldest: UInt64, _ newest: UInt64) -> UInt64? {
        guard bytes > bytesMax else { return nil }
        let share = Double(bytes - bytesMax) / Double(bytes)
        return oldest + UInt64(share * Double(newest - oldest + 1)) - 1
    }

    /// The last version that was committed before `time`: times only grow, or nearly, so halving finds it.
    private func ageCut(_ store: any Store, _ oldest: UInt64, _ newest: UInt64, before time: Int64) throws -> UInt64? {
        var (low, high) = (oldest, newest + 1)
        while low < high {
            let middle = low + (high - low) / 2
            if let found = try firstTime(in: middle..<high, of: store), found.time < time {
                low = found.version + 1
            } else {
                high = middle
            }
        }
        return low > oldest ? low - 1 : nil
    }

    /// The commits of one look for a time: so many at first, so many at most.
    private static let looks: ClosedRange<UInt64> = 16...1_024

    /// The first of these versions whose time is known. The commits of an index build have no time, and neither have
    /// records that cannot be read: further looks are longer, and then leave gaps, which double.
    private func firstTime(
        in versions: Range<UInt64>, of store: any Store
    ) throws -> (version: UInt64, time: Int64)? {
        var (next, distance) = (versions.lowerBound, Self.looks.lowerBound)
        while true {
            let limit = Int(min(distance, Self.looks.upperBound))
            for commit in try commits(from: next, limit, of: store) where versions.contains(commit.version) {
                if let note = try? CommitNote.of(commit) { return (commit.version, note.time) }
            }
            guard versions.upperBound - next > distance else { return nil }
            next += distance
            distance *= 2
        }
    }

    /// Empty when they cannot be read.
    private func commits(from version: UInt64, _ limit: Int, of store: any Store) throws -> [Commit] {
        do { return try store.commits(after: version - 1, limit: limit) } catch .corrupted { return [] }
    }
}

extension Int {
    fileprivate func clamped(to range: ClosedRange<Int>) -> Int {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}

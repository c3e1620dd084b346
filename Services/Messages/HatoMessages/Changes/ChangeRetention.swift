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
        let cuts = [bytesCut(kept.bytes, oldest, newest), try ageCut(store, oldest, newest, before: now - ageMsMax)]
        return cuts.compactMap { $0 }.max()
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
            if let committed = try self.time(of: middle, in: store), committed < time {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low > oldest ? low - 1 : nil
    }

    /// When a version, or the next that tells, was committed.
    private func time(of version: UInt64, in store: any Store) throws -> Int64? {
        for commit in try store.commits(after: version - 1, limit: 16) {
            if let note = try CommitNote.of(commit) { return note.time }
        }
        return nil
    }
}

extension Int {
    fileprivate func clamped(to range: ClosedRange<Int>) -> Int {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}

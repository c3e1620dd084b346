/// Why a store refused or failed an operation.
public enum StoreError: Error, Sendable, Hashable {
    /// Closed on purpose, or ended by an earlier failure (then `cause` says which).
    case closed(cause: String?)
    /// The write had reached the log when the store failed: the next opening may find it or not.
    case outcomeUnknown(cause: String)
    case io(String)
    case corrupted(String)
    /// The folder is open elsewhere, in this process or another.
    case locked(String)
    /// Written by a newer version of this software.
    case newerFormat(found: Int, supported: Int)
    /// Acknowledged commits up to `answered` are missing: the newest found is `found`.
    case lostCommits(answered: UInt64, found: UInt64)
    case compacted(oldest: UInt64)
    case unknownVersion(newest: UInt64)
    /// A key longer than `StoreLimits.keyBytesMax`; the transaction left nothing behind.
    case keyTooLong(bytes: Int)
}

extension StoreError {
    /// The cause of a store's end as text.
    var cause: String {
        if case .closed(let cause?) = self { cause } else { description }
    }
}

extension StoreError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .closed(nil): "the store is closed"
        case .closed(let cause?): "the store has ended: \(cause)"
        case .outcomeUnknown(let cause): "the store failed while it wrote, and may have written this: \(cause)"
        case .io(let text): text
        case .corrupted(let text): "damaged: \(text)"
        case .locked(let text): text
        case .newerFormat(let found, let supported):
            "written in format \(found) by a newer version of Hato; this one reads up to format \(supported)"
        case .lostCommits(let answered, let found):
            "\(answered - found) acknowledged commits are missing: up to \(answered), and \(found) is the newest"
        case .compacted(let oldest): "no longer kept: the oldest commit kept is \(oldest)"
        case .unknownVersion(let newest): "that version never was: the newest is \(newest)"
        case .keyTooLong(let bytes): "a key of \(bytes) bytes is longer than \(StoreLimits.keyBytesMax)"
        }
    }
}

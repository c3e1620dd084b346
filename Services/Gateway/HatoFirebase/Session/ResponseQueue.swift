/// Brings responses into the order of their requests.
///
/// Each request takes a ticket; its response is due when all earlier tickets have theirs.
struct ResponseQueue {
    private enum Entry {
        case waiting
        case ready([UInt8])
        /// The request gets no response here.
        case skipped
    }

    private var entries: [Entry] = []
    /// Entries at the start of `entries` that are done.
    private var done = 0
    /// The ticket of the first entry.
    private var first = 0
    /// Bytes of the responses that wait for an earlier one.
    private(set) var heldBytes = 0

    /// Requests whose response is not due yet.
    var count: Int { entries.count - done }

    /// Takes the next ticket.
    mutating func reserve() -> Int {
        entries.append(.waiting)
        return first + entries.count - 1
    }

    /// Returns the responses that are due now, in order.
    mutating func respond(_ ticket: Int, _ text: [UInt8]) -> [[UInt8]] {
        set(ticket, .ready(text)) ? takeDue() : []
    }

    /// The request gets no response, or gets it out of turn. Returns the responses that are due now.
    mutating func skip(_ ticket: Int) -> [[UInt8]] {
        set(ticket, .skipped) ? takeDue() : []
    }

    private mutating func set(_ ticket: Int, _ entry: Entry) -> Bool {
        let index = ticket - first
        guard index >= done, index < entries.count, case .waiting = entries[index] else { return false }
        entries[index] = entry
        if case .ready(let text) = entry { heldBytes += text.count }
        return index == done
    }

    private mutating func takeDue() -> [[UInt8]] {
        var due: [[UInt8]] = []
        loop: while done < entries.count {
            switch entries[done] {
            case .waiting: break loop
            case .ready(let text):
                due.append(text)
                heldBytes -= text.count
                entries[done] = .skipped
            case .skipped: break
            }
            done += 1
        }
        if done == entries.count || done >= 64 {
            entries.removeFirst(done)
            first += done
            done = 0
        }
        return due
    }
}

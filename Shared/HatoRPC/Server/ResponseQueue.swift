import NIOCore

/// Brings responses that come in any order back into the order of their requests.
///
/// Each request opens a slot; a slot's response leaves when every earlier slot's response has left. Slots of slow
/// methods are passed over: their responses leave when they come.
struct ResponseQueue: Hashable, Sendable {
    enum Slot: Hashable, Sendable {
        case waiting
        case passedOver
        case responded([UInt8]?)
    }

    /// The number of the first slot.
    private(set) var first: UInt64 = 0
    private var slots = CircularBuffer<Slot>(initialCapacity: 1)
    /// Requests of slow methods that have no response yet.
    private var slow: Set<UInt64> = []
    /// Bytes of responses that wait for an earlier one.
    private(set) var waitingBytes = 0

    var isEmpty: Bool { slots.isEmpty && slow.isEmpty }

    mutating func open(isSlow: Bool) -> UInt64 {
        let sequence = first + UInt64(slots.count)
        if isSlow {
            slow.insert(sequence)
            if slots.isEmpty { first += 1 } else { slots.append(.passedOver) }
        } else {
            slots.append(.waiting)
        }
        return sequence
    }

    /// Whether the response of this request has not left yet.
    func isOpen(_ sequence: UInt64) -> Bool {
        if slow.contains(sequence) { return true }
        guard sequence >= first, sequence < first + UInt64(slots.count) else { return false }
        if case .passedOver = slots[slots.index(slots.startIndex, offsetBy: Int(sequence - first))] { return false }
        return true
    }

    /// Whether the response of this request would leave as soon as it is complete.
    func leavesNext(_ sequence: UInt64) -> Bool {
        slow.contains(sequence) || sequence == first && !slots.isEmpty
    }

    /// Takes a response (nil: there is none to send); true when it may leave at once, which only slow ones do: others
    /// are taken with `next`.
    mutating func respond(_ sequence: UInt64, _ response: [UInt8]?) -> Bool {
        if slow.remove(sequence) != nil { return true }
        guard sequence >= first, sequence < first + UInt64(slots.count) else { return false }
        slots[slots.index(slots.startIndex, offsetBy: Int(sequence - first))] = .responded(response)
        waitingBytes += response?.count ?? 0
        return false
    }

    /// The next response whose turn has come.
    mutating func next() -> (sequence: UInt64, response: [UInt8]?)? {
        while let slot = slots.first {
            switch slot {
            case .waiting: return nil
            case .passedOver:
                slots.removeFirst()
                first += 1
            case .responded(let response):
                slots.removeFirst()
                first += 1
                waitingBytes -= response?.count ?? 0
                return (first - 1, response)
            }
        }
        return nil
    }

    /// An idle connection keeps no memory here.
    mutating func shrink() {
        if slots.isEmpty, slots.capacity > 64 { slots = CircularBuffer(initialCapacity: 1) }
        if slow.isEmpty { slow = [] }
    }
}

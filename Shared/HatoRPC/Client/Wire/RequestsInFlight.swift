/// The ids of the requests that have no response yet, in the order they were sent. They are assigned here, from 1.
///
/// Most responses come in the order of the requests, so that the first id is the one that is looked for.
struct RequestsInFlight {
    /// Rising. What is before `first` is over, and dropped now and then.
    private var ids: [UInt64] = []
    private var first = 0
    private var next: UInt64 = 1

    var count: Int { ids.count - first }

    var oldest: UInt64? { first < ids.count ? ids[first] : nil }

    /// The ids, in the order the requests were sent.
    var all: [UInt64] { Array(ids[first...]) }

    /// Returns the id of a new request.
    mutating func begin() -> UInt64 {
        let id = next
        next &+= 1
        ids.append(id)
        return id
    }

    /// A response has come. Returns false when no request with this id waits for one.
    mutating func end(_ id: UInt64) -> Bool {
        guard first < ids.count else { return false }
        if ids[first] == id {
            first += 1
        } else {
            guard let index = index(of: id) else { return false }
            ids.remove(at: index)
        }
        if first == ids.count {
            ids.removeAll(keepingCapacity: ids.capacity <= Self.spareMax)
            first = 0
        } else if first >= Self.spareMax, first >= ids.count / 2 {
            ids.removeFirst(first)
            first = 0
        }
        return true
    }

    private func index(of id: UInt64) -> Int? {
        var (low, high) = (first, ids.count)
        while low < high {
            let middle = low + (high - low) / 2
            if ids[middle] == id { return middle }
            if ids[middle] < id { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    /// Places that may stay unused.
    private static let spareMax = 32
}

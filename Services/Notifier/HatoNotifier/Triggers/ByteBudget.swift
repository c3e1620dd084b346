import Synchronization

/// Bytes that several tasks share: a task that wants more than is free waits, in the order of arrival.
final class ByteBudget: Sendable {
    /// Bytes that are held for as long as this object is referenced.
    final class Reservation: Sendable {
        private let budget: ByteBudget
        private let bytes: Atomic<Int>

        fileprivate init(_ budget: ByteBudget, _ bytes: Int) {
            self.budget = budget
            self.bytes = Atomic(bytes)
        }

        /// Gives back what it holds beyond `rest`.
        func shrink(to rest: Int) {
            let former = bytes.min(max(0, rest), ordering: .relaxed).oldValue
            if former > max(0, rest) { budget.giveBack(former - max(0, rest)) }
        }

        deinit { budget.giveBack(bytes.load(ordering: .relaxed)) }
    }

    private struct Waiter {
        var id: UInt64
        var bytes: Int
        var continuation: CheckedContinuation<Reservation, any Error>
    }

    private struct State {
        var free: Int
        var waiting: [Waiter] = []
        var nextID: UInt64 = 0

        /// Those whose turn has come, with what they get.
        mutating func admitted() -> [Waiter] {
            var admitted: [Waiter] = []
            while let first = waiting.first, first.bytes <= free {
                free -= first.bytes
                admitted.append(waiting.removeFirst())
            }
            return admitted
        }
    }

    let bytes: Int
    private let state: Mutex<State>

    init(_ bytes: Int) {
        self.bytes = max(1, bytes)
        state = Mutex(State(free: max(1, bytes)))
    }

    /// Bytes without a reservation.
    var free: Int { state.withLock { $0.free } }

    /// Those that wait.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Waits until they are free; a task that wants more than there are gets all of them. Throws when cancelled.
    func reserve(_ wanted: Int) async throws -> Reservation {
        let wanted = min(max(0, wanted), bytes)
        let id: UInt64 = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Reservation, any Error>) in
                let admitted: [Waiter]? = state.withLock { state in
                    // Under the lock that `onCancel` takes: one of the two sees the other.
                    if Task.isCancelled { return nil }
                    state.waiting.append(Waiter(id: id, bytes: wanted, continuation: continuation))
                    return state.admitted()
                }
                guard let admitted else { return continuation.resume(throwing: CancellationError()) }
                resume(admitted)
            }
        } onCancel: {
            let (waiter, admitted) = state.withLock { state -> (Waiter?, [Waiter]) in
                guard let index = state.waiting.firstIndex(where: { $0.id == id }) else { return (nil, []) }
                let waiter = state.waiting.remove(at: index)
                return (waiter, state.admitted())
            }
            waiter?.continuation.resume(throwing: CancellationError())
            resume(admitted)
        }
    }

    /// The same without waiting; nil: they are not free.
    func reserveNow(_ wanted: Int) -> Reservation? {
        let isFree = state.withLock { state in
            guard state.waiting.isEmpty, wanted <= state.free else { return false }
            state.free -= wanted
            return true
        }
        return isFree ? Reservation(self, wanted) : nil
    }

    private func giveBack(_ bytes: Int) {
        let admitted: [Waiter] = state.withLock { state in
            state.free += bytes
            return state.admitted()
        }
        resume(admitted)
    }

    private func resume(_ admitted: [Waiter]) {
        for waiter in admitted { waiter.continuation.resume(returning: Reservation(self, waiter.bytes)) }
    }
}

/// What all triggers of all databases hold together, as parts of `NotifierLimits.triggerBytesMax`. A task that
/// holds bytes of one part waits for bytes of a later one only, so that there is no deadlock.
struct TriggerBudget: Sendable {
    /// Changes that came and are not written down yet.
    let changes: ByteBudget
    /// Transactions under way.
    let transactions: ByteBudget
    /// Changes that were read again from their rows.
    let loaded: ByteBudget
    /// What is being read of messages, or was read for a firing that waits for it.
    let reads: ByteBudget
    /// The same of lists of recipients that take more than a page.
    let longReads: ByteBudget
    /// Recipients that were read.
    let lists: RecipientLists
    /// Those of firings of which parts are to come.
    let parted: ByteBudget

    init(_ limits: NotifierLimits) {
        let part = max(1, limits.triggerBytesMax / 4)
        changes = ByteBudget(part / 2)
        loaded = ByteBudget(part / 2)
        transactions = ByteBudget(part)
        reads = ByteBudget(max(part, Self.readsMin))
        longReads = ByteBudget(2 * Self.recipientsRead(of: reads))
        lists = RecipientLists(bytesMax: part / 2)
        parted = ByteBudget(part / 2)
    }

    /// Of one database.
    var changesPerFeed: Int { max(1, min(changes.bytes / 4, Self.writtenMax)) }
    /// Of one writer, but for a change that takes more.
    var loadedPerWriter: Int { max(1, loaded.bytes / 32) }
    /// Loaded in one turn.
    var loadedPerTurn: Int { max(1, min(loaded.bytes / 2, Self.loadedMax)) }
    /// Held between turns.
    var loadedBetweenTurns: Int { loaded.bytes / 4 }
    /// Of one transaction.
    var transaction: Int { max(1, min(transactions.bytes / 4, Self.transactionMax)) }
    /// What one trigger puts into a transaction before the others have had their turn.
    var turn: Int { max(1, transaction / 4) }

    /// Of one reading of recipients, four short and two long ones at a time: half for a response, with what is made of
    /// it, half for the list.
    var recipientsRead: Int { Self.recipientsRead(of: reads) }
    /// What was read and waits for its turn leaves four of them as much.
    private static func recipientsRead(of reads: ByteBudget) -> Int { reads.bytes / 32 * 7 }
    var keysTextMax: Int { recipientsRead / 2 / Self.bytesPerLineByte }
    var listMax: Int { recipientsRead / 2 }

    /// How large a node is that is read as a whole. It is read alone: its line and its text take three times the text's
    /// bytes.
    struct NodeBounds: Sendable {
        var textBytesMax: Int
        var valueBytesMax: Int
    }
    var node: NodeBounds { NodeBounds(textBytesMax: reads.bytes / 8, valueBytesMax: reads.bytes / 2) }
    var nodeRead: Int { 3 * node.textBytesMax + node.valueBytesMax }

    /// What one transaction writes down, and what one loads: others wait for its turn of the store.
    private static let (writtenMax, loadedMax) = (8 << 20, 16 << 20)
    /// Attempts begin and end between transactions: while much is accepted, each of these delays them by some tens of
    /// milliseconds.
    private static let transactionMax = 64 * bytesPerDelivery
    /// Of the smallest `triggerBytesMax` that the setting takes.
    private static let readsMin = 256 << 10
    /// A parsed change takes about so many times the bytes of its line.
    static let bytesPerLineByte = 8
    /// Rows and records of one delivery, with what the store makes of them.
    static let bytesPerDelivery = 4_096
}

import Synchronization

/// How many reads have a small reservation, in all and of each client. Part of `ProcessBudget`.
///
/// Most of them wait for a reader's thread. So they take a part of the memory only, and one client leaves as many to
/// others as it has.
struct SmallReads: ~Copyable, Sendable {
    private let count = Atomic(0)
    private let countMax: Int

    init(countMax: Int) { self.countMax = max(1, countMax) }

    /// How many more may start; less than 0 while exemptions run.
    var free: Int { countMax - count.load(ordering: .sequentiallyConsistent) }

    /// A client has so many more, or fewer; their bytes are counted after this.
    func changed(by change: Int, of account: ClientAccount) {
        count.wrappingAdd(change, ordering: .sequentiallyConsistent)
        account.addReads(change)
    }

    /// Whether another one of the client waits until one of the client's own has ended.
    func isBeyondShare(_ account: ClientAccount) -> Bool {
        let own = account.smallReads
        return own > 0 && own >= free
    }
}

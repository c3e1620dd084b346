import HatoModel

/// A trigger and where it begins.
struct FeedTrigger: Sendable {
    var compiled: CompiledTrigger
    var record: TriggerRecord

    func sees(_ commit: FeedCommit) -> Bool {
        commit.epoch != record.epoch || commit.version > record.startsAfter
    }
}

/// One trigger that one change fires.
struct Firing: Sendable {
    /// Its number among the triggers.
    var index: Int
    var trigger: CompiledTrigger
    var change: FeedChange
    /// Without its changes.
    var commit: FeedCommit
    /// When the commit came, in the time of `RecipientLists`.
    var time: UInt64
    /// Recipients up to this uid have it already.
    var through: String?
    fileprivate var slot: Int
}

/// The changes of a feed that came and are not handled yet, and how far each trigger is among them. Pure.
///
/// Triggers go through the changes together, in passes: change by change, and for each in the order of triggers. One
/// that has used up its turn rests until the others have reached the end, and goes on in the next pass where it was. So
/// the order of commits holds for each trigger, and one with many recipients holds up the others for a turn at a time.
struct FeedWindow: Sendable {
    private struct Slot: Sendable {
        /// Nil: nothing in it for a trigger.
        var change: FeedChange?
        var commit: FeedCommit
        var time: UInt64
        /// The last one of its commit.
        var isLast: Bool
        /// What its commit holds of the budget.
        var reservation: ByteBudget.Reservation?
    }

    private struct Progress: Sendable {
        /// The first change that it has not done with, unless the pass is further and it does not rest.
        var start = 0
        var through: String?
        var spent = 0
        var isResting = false
    }

    private let triggers: [FeedTrigger]
    private let byPattern: [String: [Int]]
    private var slots: [Slot] = []
    /// The number of the first slot, counted from the first that ever was.
    private var first = 0
    private var progress: [Progress]
    /// Where the pass is: the number of a slot, and how many of the triggers of its pattern had their turn there.
    private var (scan, turns) = (0, 0)

    init(_ triggers: [FeedTrigger]) {
        self.triggers = triggers
        progress = Array(repeating: Progress(), count: triggers.count)
        byPattern = Dictionary(grouping: triggers.indices) { triggers[$0].compiled.pattern.description }
    }

    var isEmpty: Bool { slots.isEmpty }
    private var end: Int { first + slots.count }

    /// - Parameter isHandled: its changes were handled in another history.
    mutating func append(_ held: BufferedCommit, isHandled: Bool, at time: UInt64) {
        var mark = held.commit
        mark.changes = []
        let changes: [FeedChange?] = isHandled || held.commit.changes.isEmpty ? [nil] : held.commit.changes
        for (index, change) in changes.enumerated() {
            slots.append(
                Slot(
                    change: change, commit: mark, time: time, isLast: index == changes.count - 1,
                    reservation: held.reservation))
        }
    }

    /// The next firing of this pass; nil at its end.
    mutating func nextFiring() -> Firing? {
        while scan < end {
            let slot = slots[scan - first]
            let candidates = slot.change.flatMap { byPattern[$0.pattern] } ?? []
            while turns < candidates.count, let change = slot.change {
                let index = candidates[turns]
                turns += 1
                let progress = progress[index]
                guard !progress.isResting, progress.start <= scan, triggers[index].sees(slot.commit),
                    triggers[index].compiled.matches(change)
                else { continue }
                return Firing(
                    index: index, trigger: triggers[index].compiled, change: change, commit: slot.commit,
                    time: slot.time, through: progress.start == scan ? progress.through : nil, slot: scan)
            }
            (scan, turns) = (scan + 1, 0)
        }
        return nil
    }

    /// What a firing cost. A trigger that has spent `max` in this pass rests; so does one whose recipients behind
    /// `through` are still to come.
    mutating func spent(_ bytes: Int, on firing: Firing, through: String?, max: Int) {
        var progress = progress[firing.index]
        progress.spent += bytes
        progress.through = through
        if through != nil || progress.spent >= max {
            progress.isResting = true
            progress.start = through == nil ? firing.slot + 1 : firing.slot
        }
        self.progress[firing.index] = progress
    }

    /// What a trigger has spent in this pass.
    func spending(of firing: Firing) -> Int { progress[firing.index].spent }

    /// Begins another pass for those that rest; false when none does.
    mutating func beginPass() -> Bool {
        let resting = progress.filter(\.isResting).map(\.start).min()
        for index in progress.indices {
            if !progress[index].isResting {
                progress[index].start = scan
                progress[index].through = nil
            }
            progress[index].isResting = false
            progress[index].spent = 0
        }
        guard let resting else { return false }
        (scan, turns) = (resting, 0)
        return true
    }

    /// Drops what every trigger has done with and the pass is beyond; returns the newest commit among it that is done
    /// as a whole, and how many changes went.
    mutating func dropDone() -> (through: FeedCommit?, count: Int) {
        let resting = progress.filter(\.isResting).map(\.start).min() ?? scan
        let waiting = progress.filter { !$0.isResting }.map { max($0.start, scan) }.min() ?? scan
        let done = max(0, min(resting, waiting, scan) - first)
        guard let last = slots[..<done].lastIndex(where: \.isLast) else { return (nil, 0) }
        let commit = slots[last].commit
        slots.removeFirst(last + 1)
        first += last + 1
        return (commit, last + 1)
    }
}

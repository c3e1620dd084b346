import HatoModel

/// A trigger and where it begins.
struct FeedTrigger: Sendable {
    var compiled: CompiledTrigger
    var record: TriggerRecord

    func fires(for change: FeedChange, of commit: FeedCommit) -> Bool {
        (commit.epoch != record.epoch || commit.version > record.startsAfter) && compiled.matches(change)
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
    /// Of its change.
    var position: ChangePosition
    /// Recipients up to this uid have it already.
    var through: String?
    /// What it sends, where that was decided before.
    var content: TriggerSource.Content?
    /// An earlier firing of the trigger is not done: this one may come before it only as a whole, and only for
    /// recipients that the earlier ones do not have.
    var isAhead: Bool
    fileprivate var slot: Int

    /// The version of the store before the change came: what is read later is read after the change.
    var time: UInt64 { position.sequence &- 1 }
}

/// A change that was read from its row.
struct LoadedChange: Sendable {
    /// How far a firing of it is that began before it was read.
    enum Known: Sendable, Hashable {
        case isDone
        /// Recipients up to this uid have it.
        case through(String)
    }

    var row: ChangeRow
    var record: ChangeRecord
    /// By the number of the trigger.
    var known: [Int: Known] = [:]
    /// What it holds of the budget.
    var reservation: ByteBudget.Reservation?

    var place: ChangeBacklog.Place { .init(position: row.position, version: record.version) }
}

/// Changes of one writer that are not handled yet, and how far each trigger is among them. Pure.
///
/// Triggers go through the changes together, in passes: change by change, and for each in the order of triggers. One
/// that has used up its turn rests until the others have reached the end, and goes on in the next pass where it was.
/// One that needs what is still being read rests until that is there. So one with many recipients holds up the others
/// for a turn at a time, and not at all while its recipients are read.
///
/// The order of commits holds for each trigger and recipient. Behind a firing of which parts are to come, later ones of
/// the trigger are returned as well, which may overtake it if they have other recipients.
struct FeedWindow: Sendable {
    fileprivate struct Progress: Sendable {
        /// The first change that it has not done with, unless the pass is further and it does not rest.
        var start = 0
        // Of the firing at `start`.
        var through: String?
        var content: TriggerSource.Content?
        var spent = 0
        var isResting = false
        /// What it rests for, or rested for until its firing at `start` comes.
        var need: FeedReadings.Need?
        /// What was read for that firing before.
        var former: [FeedReadings.Need] = []
        /// The firing at `start` has had its part in this pass.
        var isAhead = false
        /// Firings behind `start` that were returned.
        var ahead: [Int: Ahead] = [:]
        /// How many of them are not done.
        var passedOver = 0

        var isUnfinished: Bool { isResting || isAhead }
    }

    fileprivate enum Ahead: Sendable {
        case isDone
        case passedOver(TriggerSource.Content)
    }

    /// Firings of a trigger that are passed over before it rests.
    private static let passedOverMax = 64

    private let triggers: [FeedTrigger]
    private let byPattern: [String: [Int]]
    private var slots: [LoadedChange] = []
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
    var count: Int { slots.count }
    /// The first change that is not done.
    var oldest: LoadedChange? { slots.first }
    private var end: Int { first + slots.count }

    mutating func append(_ change: LoadedChange) { slots.append(change) }

    /// The next firing of this pass; nil at its end.
    mutating func nextFiring() -> Firing? {
        while scan < end {
            let slot = slots[scan - first]
            let (change, commit) = (slot.record.change, slot.record.commit)
            let candidates = byPattern[change.pattern] ?? []
            while turns < candidates.count {
                let index = candidates[turns]
                turns += 1
                let progress = progress[index]
                guard !progress.isResting, progress.start <= scan, triggers[index].fires(for: change, of: commit)
                else { continue }
                (self.progress[index].need, self.progress[index].former) = (nil, [])
                var firing = Firing(
                    index: index, trigger: triggers[index].compiled, change: change, commit: commit,
                    position: slot.row.position, isAhead: progress.isAhead, slot: scan)
                switch slot.known[index] {
                case .isDone: continue
                case .through(let uid): firing.through = uid
                case nil: break
                }
                if progress.start == scan {
                    firing.through = progress.through ?? firing.through
                    firing.content = progress.content
                }
                switch progress.ahead[scan] {
                case .isDone: continue
                case .passedOver(let content): firing.content = content
                case nil: break
                }
                return firing
            }
            (scan, turns) = (scan + 1, 0)
        }
        return nil
    }

    /// What a firing cost. A trigger that has spent `max` in this pass rests. Recipients behind `through` are still to
    /// come; nil: all have it.
    mutating func spent(_ bytes: Int, on firing: Firing, through: String?, max: Int) {
        var progress = progress[firing.index]
        progress.spent += bytes
        progress.isResting = progress.spent >= max
        if firing.isAhead {
            progress.done(firing.slot)
        } else if through != nil {
            progress.begin(at: firing.slot, through, firing.content)
            progress.isAhead = true
        } else if progress.isResting {
            progress.begin(at: firing.slot + 1, nil, nil)
        }
        self.progress[firing.index] = progress
    }

    /// Nothing is to be sent for a firing.
    mutating func isDone(_ firing: Firing) {
        if firing.isAhead { progress[firing.index].done(firing.slot) }
    }

    /// A firing that is ahead waits for the earlier ones.
    ///
    /// - Parameter isLast: whether those behind it wait, too.
    mutating func passOver(_ firing: Firing, _ content: TriggerSource.Content?, isLast: Bool) {
        var progress = progress[firing.index]
        if let content, progress.ahead.updateValue(.passedOver(content), forKey: firing.slot) == nil {
            progress.passedOver += 1
        }
        progress.isResting = isLast || progress.passedOver >= Self.passedOverMax
        self.progress[firing.index] = progress
    }

    /// What a trigger has spent in this pass.
    func spending(of firing: Firing) -> Int { progress[firing.index].spent }

    /// The trigger of a firing rests until what it needs is there, beside what it needed before: the window may be
    /// given up meanwhile, and the firing begin anew.
    mutating func wait(for need: FeedReadings.Need, beside former: [FeedReadings.Need] = [], _ firing: Firing) {
        var progress = progress[firing.index]
        progress.begin(at: firing.slot, firing.through, firing.content)
        (progress.isResting, progress.need, progress.former) = (true, need, former)
        self.progress[firing.index] = progress
    }

    /// What triggers rest for, or are to go on with in this pass, the oldest firing first.
    var needs: [FeedReadings.Need] {
        progress.filter { $0.need != nil }.sorted { $0.start < $1.start }.flatMap { progress in
            [progress.need].compactMap(\.self) + progress.former
        }
    }

    /// At most `count` firings that come next when all is there that triggers rest for.
    func upcoming(_ count: Int) -> [Firing] {
        var ahead = self
        guard ahead.beginPass({ _ in true }) else { return [] }
        var firings: [Firing] = []
        while firings.count < count, let firing = ahead.nextFiring() { firings.append(firing) }
        return firings
    }

    /// Begins another pass for those that rest, unless what they need is not there; false when there are none.
    mutating func beginPass(_ isThere: (FeedReadings.Need) -> Bool) -> Bool {
        var resumed: Int?
        for index in progress.indices {
            progress[index].spent = 0
            guard progress[index].isUnfinished else {
                progress[index].begin(at: max(progress[index].start, scan), nil, nil)
                continue
            }
            if let need = progress[index].need, !isThere(need) { continue }
            (progress[index].isResting, progress[index].isAhead) = (false, false)
            resumed = min(resumed ?? .max, progress[index].start)
        }
        guard let resumed else { return false }
        (scan, turns) = (resumed, 0)
        return true
    }

    /// Drops what every trigger has done with and the pass is beyond; returns it.
    mutating func dropDone() -> [LoadedChange] {
        let resting = progress.filter(\.isUnfinished).map(\.start).min() ?? scan
        let waiting = progress.filter { !$0.isUnfinished }.map { max($0.start, scan) }.min() ?? scan
        let done = max(0, min(resting, waiting, scan) - first)
        defer {
            slots.removeFirst(done)
            first += done
        }
        return Array(slots[..<done])
    }
}

extension FeedWindow.Progress {
    /// The firing at a slot is the first that is not done, or is the next to come.
    fileprivate mutating func begin(at slot: Int, _ through: String?, _ content: TriggerSource.Content?) {
        (start, self.through, self.content) = (slot, through, content)
        guard !ahead.isEmpty else { return }
        ahead = ahead.filter { $0.key >= slot }
        passedOver = ahead.values.count { if case .passedOver = $0 { true } else { false } }
    }

    fileprivate mutating func done(_ slot: Int) {
        if case .passedOver = ahead.updateValue(.isDone, forKey: slot) { passedOver -= 1 }
    }
}

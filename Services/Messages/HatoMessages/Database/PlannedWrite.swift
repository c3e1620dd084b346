import HatoModel
import HatoRules
import HatoStorage
import HatoTree

/// A large write that was prepared on a snapshot, on another thread than the writer's: normalised, authorised, planned,
/// its rows in a file when they are many. The work in its turn does not grow with its size: to check that nothing it
/// depends on has changed since, and to apply it.
final class PlannedWrite: Sendable {
    /// What did not come out as the write's turn needs it: it is planned again.
    struct Outdated: Error {}

    let resolved: ResolvedMutation
    /// Why the rules refuse it, if they do.
    private let refusal: MessagesError?
    /// Nil when it is refused.
    private let ahead: OptimisticPlan?
    /// The changes as the record keeps them, and how many bytes they were before.
    let cutChanges: CutChanges
    /// Instead of the rows of the plan.
    private let prepared: [any PreparedRows]?
    private let database: DatabaseID
    private let rules: String
    private let indexes: [IndexDefinition]
    private let reads: RulesReadIndex
    /// Nothing that it rests on has changed up to here.
    private let validThrough: UInt64

    /// The maximum number of recorded reads of rules, with some 200 bytes each. A write whose rules read more is
    /// authorised again in its turn whenever anything was written meanwhile.
    private static let readsMax = 1_000_000
    /// More rows than this, or more bytes, are prepared: one by one, the writer takes 2 ms for a thousand, and its
    /// log as long as the disk for a mebibyte.
    private static let rowsMax = 8_192
    private static let bytesMax = 2 << 20

    /// Nil when the database is not there yet: a write before this one may make it. Throws `Outdated` when it was
    /// overtaken.
    init?(_ write: Write, _ parts: ServiceParts) throws {
        let valuesMax = parts.limits.writeValuesMax
        guard write.mutation.valueCount(upTo: valuesMax) <= valuesMax else {
            let isUpdate = if case .update = write.mutation.operation { true } else { false }
            throw MessagesError.tooManyValues(parameter: isUpdate ? "values" : "value", max: valuesMax)
        }
        let snapshot = try parts.store.snapshot()
        guard let database = parts.catalogue.databases(of: snapshot).byName[write.database] else { return nil }
        let reader = StoreTreeReader(snapshot)
        let now = parts.now()
        resolved = try database.planner.resolve(write.mutation, reading: reader, at: now)
        var recording = RulesRecording(reads: true, readsMax: Self.readsMax)
        var authoriser = OperationAuthoriser(database, reading: reader, now: now, explains: write.isByAdministrator)
        authoriser.recognisePushes(of: write.caller, parts)
        refusal = try authoriser.refusal(of: resolved, by: write.caller, recording: &recording)
        var recorded = recording.reads ?? RulesReadSet()
        for read in resolved.reads { recorded.insert(read) }
        // A push that is refused may repeat one that is written meanwhile.
        if resolved.isPush, let place = resolved.rulesTargets.first?.path {
            recorded.insert(RulesRead(path: place, aspect: .value))
        }
        let reads = RulesReadIndex(recorded)
        self.reads = reads
        self.database = database.id
        rules = database.record.rules
        indexes = database.indexes.definitions
        ahead = refusal == nil ? try database.planner.planAhead(resolved, reading: reader) : nil
        cutChanges = CutChanges(ahead?.plan.changes ?? [])
        prepared = try ahead.flatMap { try Self.prepare($0.plan.rows, parts.store) }
        validThrough = try Self.catchUp(from: snapshot.version, parts, database.id) { [ahead] changes in
            reads.isTouched(by: changes) || ahead?.basis.isTouched(by: changes) == true
        }
    }

    private static func prepare(_ rows: RowBatch, _ store: any Store) throws -> [any PreparedRows]? {
        guard rows.count > rowsMax || rows.byteCount > bytesMax,
            let parts = rows.sorted(sections: StoreKeys.sectionLength)
        else { return nil }
        return try parts.map { part in try store.prepareRows { part.apply(to: StoreRows($0)) } }
    }

    /// Looks at the commits that came meanwhile, until so few are left that the writer may look at them; returns how
    /// far.
    private static func catchUp(
        from start: UInt64, _ parts: ServiceParts, _ database: DatabaseID, isTouched: ([PathChange]) -> Bool
    ) throws -> UInt64 {
        var (position, bytes) = (start, 0)
        repeat {
            let commits = try parts.store.commits(after: position, limit: 256)
            guard let last = commits.last else { break }
            bytes = commits.reduce(0) { $0 + $1.record.count }
            for commit in commits {
                guard let note = try CommitNote.of(commit), note.database == database else { continue }
                if isTouched(note.changes) { throw Outdated() }
            }
            position = last.version
            // Those that came while these were read are about as large.
        } while parts.store.version - position > commitsLeftMax || bytes > bytesLeftMax
        return position
    }

    private static let commitsLeftMax: UInt64 = 64
    private static let bytesLeftMax = 1 << 20

    // MARK: In its turn

    /// In a write closure: throws why the write is refused, or `Outdated`; else what to apply.
    func check(
        in database: Database, _ history: CommitHistory, _ resolved: ResolvedMutation, _ turn: Turn
    ) throws -> OptimisticPlan {
        guard database.id == self.database, database.record.rules.hasSameBytes(as: rules),
            database.indexes.definitions == indexes,
            try !history.touched(
                after: validThrough,
                { [reads, ahead] changes in
                    reads.isTouched(by: changes) || ahead?.basis.isTouched(by: changes) == true
                })
        else { throw Outdated() }
        if let refusal { throw refusal }
        guard let ahead else { throw Outdated() }
        try database.planner.check(ahead, of: resolved, in: turn, history: history)
        return ahead
    }

    func applyRows(to transaction: any StoreTransaction) {
        if let prepared { return transaction.take(prepared) }
        ahead?.plan.rows.apply(to: StoreRows(transaction))
    }
}

extension Mutation {
    /// Values of so many nodes take the writer less than some milliseconds to make ready and to authorise.
    private static let nodesMax = 2_000
    /// Text of so many bytes is as much work as one node.
    private static let textBytesPerNode = 256

    /// An update of so many paths is planned in its turn whatever is stored there: it takes less than 50 ms.
    private static let pathsInTurnMax = 16
    /// Some milliseconds.
    private static let hashedInTurnBytesMax = 256 << 10
    private static let replacedInTurnRowsMax = 8_192

    /// Whether what is stored decides if its turn is long enough to plan it.
    var mayOutgrowTurn: Bool {
        if case .etag? = condition { return true }
        if case .update(let values) = operation { return values.count > Mutation.pathsInTurnMax }
        return false
    }

    /// Planning it throws when that takes long.
    mutating func limitToTurn() {
        hashedBytesMax = Mutation.hashedInTurnBytesMax
        rowsInTurnMax = Mutation.replacedInTurnRowsMax
    }

    mutating func liftTurnLimits() {
        hashedBytesMax = WritePlanner.hashedBytesMax
        rowsInTurnMax = .max
    }

    /// Whether it is worth looking at before its turn.
    func isLarge(_ limits: MessagesLimits) -> Bool {
        var left = min(Mutation.nodesMax, limits.writeValuesMax)
        forEachValue { value in
            value.countDown(&left) { node in
                if case .string(let text) = node { 1 + text.utf8.count / Mutation.textBytesPerNode } else { 1 }
            }
        }
        return left < 0
    }

    /// The number of its values; beyond `limit` it is not exact.
    func valueCount(upTo limit: Int) -> Int {
        var left = limit
        forEachValue { value in
            value.countDown(&left) { node in
                switch node {
                case .null, .array, .object: 0
                case .bool, .number, .string: 1
                }
            }
        }
        return limit - left
    }

    private func forEachValue(_ body: (JSONValue) -> Void) {
        switch operation {
        case .set(let value), .push(let value, _, _): body(value)
        case .update(let values): for member in values.members { body(member.value) }
        }
    }
}

extension JSONValue {
    /// Takes what its nodes count for from `left`, until nothing is left.
    fileprivate func countDown(_ left: inout Int, _ weight: (JSONValue) -> Int) {
        left -= weight(self)
        guard left >= 0 else { return }
        switch self {
        case .array(let elements):
            for element in elements where left >= 0 { element.countDown(&left, weight) }
        case .object(let object):
            for member in object.members where left >= 0 { member.value.countDown(&left, weight) }
        case .null, .bool, .number, .string: return
        }
    }
}

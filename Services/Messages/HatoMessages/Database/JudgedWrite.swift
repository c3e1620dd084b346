import HatoModel
import HatoRules
import HatoStorage
import HatoTree

/// A large write that was made ready and judged by the rules on a snapshot, on a reader's thread, so that other writes
/// need not wait for it; with what that depended on.
struct JudgedWrite: Sendable {
    let resolved: ResolvedMutation
    /// Why the rules refuse it, if they do.
    let refusal: MessagesError?
    private let database: DatabaseID
    private let rules: String
    /// Of the snapshot.
    private let version: UInt64
    private let reads: RulesReadSet
    private let isRepeatable: Bool

    /// On a reader's thread. nil when the database is not there yet: a write before this one may make it.
    init?(_ write: Write, _ parts: ServiceParts) throws {
        let snapshot = try parts.store.snapshot()
        guard let database = parts.catalogue.readable[write.database] else { return nil }
        let reader = StoreTreeReader(snapshot)
        let now = parts.now()
        resolved = try database.planner.resolve(write.mutation, reading: reader, at: now)
        var recording = RulesRecording(reads: true)
        refusal = try RulesJudge(database, reading: reader, now: now, explains: write.isByAdministrator)
            .refusal(of: resolved, by: write.caller, recording: &recording)
        var reads = recording.reads ?? RulesReadSet()
        for read in resolved.reads { reads.insert(read) }
        self.reads = reads
        self.database = database.id
        rules = database.record.rules
        version = snapshot.version
        isRepeatable = if case .push(_, _, isClientKey: true) = write.mutation.operation { true } else { false }
    }

    /// In a write closure: whether it would come out the same now. (Whether a refused push is only repeated, the kept
    /// commits tell; so that is looked at in its turn.)
    func holds(in database: Database, _ history: CommitHistory) throws -> Bool {
        if refusal != nil, isRepeatable { return false }
        return try database.id == self.database && database.record.rules.hasSameBytes(as: rules)
            && !history.touched(reads, after: version)
    }
}

extension Mutation {
    /// Values of so many nodes take the writer less than some milliseconds to make ready and to judge.
    private static let nodesMax = 2_000

    /// Whether it is worth looking at before its turn.
    var isLarge: Bool {
        var left = Mutation.nodesMax
        switch operation {
        case .set(let value), .push(let value, _, _): value.countDown(&left)
        case .update(let values): JSONValue.object(values).countDown(&left)
        }
        return left < 0
    }
}

extension JSONValue {
    /// Takes the number of its nodes from `left`, until nothing is left.
    fileprivate func countDown(_ left: inout Int) {
        left -= 1
        guard left >= 0 else { return }
        switch self {
        case .array(let elements):
            for element in elements where left >= 0 { element.countDown(&left) }
        case .object(let object):
            for member in object.members where left >= 0 { member.value.countDown(&left) }
        case .null, .bool, .number, .string: return
        }
    }
}

import HatoModel
public import HatoRules

/// Plans the rows of a write to the tree (spec realtime-database §2, §6; protocol §5).
///
/// It reads through the reader only, writes nothing, and uses no clock: the same mutation, rows and time give the same
/// plan. The rows of a plan must be applied before the next mutation is planned.
public struct WritePlanner: Sendable {
    /// Nodes larger than this are not hashed for a precondition (protocol §5).
    public static let hashedBytesMax = 16 * 1024 * 1024

    /// Encodes keys of the tree as keys of rows.
    public let codec: TreeKeyCodec
    /// The indexes whose rows are written with the data.
    public private(set) var indexes: any IndexSet

    /// See `PlanDraft.beforeBytesMax`.
    var beforeBytesMax = PlanDraft.beforeBytesMax
    var skeletons = SkeletonBudget()
    /// Smaller nodes are hashed each time, and are part of the error for a caller that named a wrong etag. A connection
    /// may have a thousand such errors under way.
    var smallBytesMax = TreeError.mismatchBytesMax

    private let cache: NodeCache?

    /// - Parameter cache: Saves writes their reads; see there for its conditions. nil: every plan is made from the
    ///   reader alone.
    public init(codec: TreeKeyCodec, indexes: any IndexSet = NoIndexes(), cache: NodeCache? = nil) {
        self.codec = codec
        self.indexes = indexes
        self.cache = cache
    }

    /// The same planner and cache with other indexes: it replaces this one in the turn of a write that changes indexes
    /// and nothing of the tree.
    public func with(_ indexes: any IndexSet) -> WritePlanner {
        var planner = self
        planner.indexes = indexes
        return planner
    }

    /// Begins the turn of a write, which reads through the planner's cache and fills it.
    ///
    /// - Parameter reader: reads the rows as the write before this one left them.
    public func turn(reading reader: any TreeReader) -> Turn { Turn(reader, codec: codec, cache: cache) }

    /// Determines the nodes that a mutation writes: values normalised, server values resolved. Rules authorise this
    /// result.
    ///
    /// - Parameter now: milliseconds since 1970, the single time of the write.
    /// - Throws: `TreeError`, or the errors of the reader.
    public func resolve(
        _ mutation: Mutation, reading reader: any TreeReader, at now: Int64
    ) throws -> ResolvedMutation {
        let numbers = StoredNumberSource(reader: reader, codec: codec, base: mutation.path, now: now)
        let targets = try Self.targets(of: mutation, numbers)
        return ResolvedMutation(mutation: mutation, now: now, targets: targets, reads: numbers.readLog.reads)
    }

    /// The same before its turn, on any thread; nil when the result depends on stored data, as with increments.
    ///
    /// - Throws: `TreeError`.
    public static func resolve(_ mutation: Mutation, at now: Int64) throws -> ResolvedMutation? {
        do {
            return ResolvedMutation(
                mutation: mutation, now: now, targets: try targets(of: mutation, TimestampSource(now: now)), reads: [])
        } catch is TimestampSource.NeedsStoredNumber {
            return nil
        }
    }

    /// Plans a resolved mutation in its turn; `Turn.commit` follows unless it is refused.
    ///
    /// - Throws: `TreeError`, `TooLargeForTurn`, or the errors of the reader.
    public func plan(
        _ resolved: ResolvedMutation, in turn: Turn, history: (any ChangeHistory)? = nil
    ) throws -> WritePlan {
        let targets = resolved.targets
        if resolved.isConditional {
            try check(resolved.mutation, history) { try storedEtag(resolved.mutation, in: turn) }
        }
        var draft = draft(resolved.mutation, reading: turn, in: turn)
        if case .push(let value, _, isClientKey: true) = resolved.mutation.operation {
            let earlier = EarlierPush(value: value, hidesStored: resolved.hidesStored, history: history)
            guard try draft.push(targets[0], unless: earlier) else { return draft.plan(at: resolved.now) }
        } else {
            try draft.write(targets)
        }
        try appendIndexRows(&draft)
        return plan(draft, resolved)
    }

    private func draft(_ mutation: Mutation, reading reader: any TreeReader, in turn: Turn? = nil) -> PlanDraft {
        var draft = PlanDraft(
            reader: reader, codec: codec, turn: turn, beforeBytesMax: beforeBytesMax,
            rowsInTurnMax: turn == nil ? .max : mutation.rowsInTurnMax)
        draft.skeletons = skeletons
        return draft
    }

    private func appendIndexRows(_ draft: inout PlanDraft) throws {
        guard !draft.changes.isEmpty else { return }
        let write = IndexedWrite(changes: draft.changes, reader: draft.reader.stored, codec: codec)
        try indexes.appendRows(for: write, to: &draft.rows)
    }

    private func plan(_ draft: PlanDraft, _ resolved: ResolvedMutation) -> WritePlan {
        var plan = draft.plan(at: resolved.now)
        if case .etag? = resolved.mutation.condition { plan.etag = SimpleHash.etag(resolved.targets[0].node) }
        return plan
    }

    /// The stored data for rules in the turn of a write.
    public func storedData(in turn: Turn) -> StoredData { StoredData(in: turn, codec: codec) }

    /// Whether this is a push that an earlier attempt, with the same key of the client, has already written.
    ///
    /// - Throws: the errors of the reader and of the history.
    public func isRepeated(
        _ resolved: ResolvedMutation, reading reader: any TreeReader, history: (any ChangeHistory)?
    ) throws -> Bool {
        guard case .push(let value, _, isClientKey: true) = resolved.mutation.operation else { return false }
        let target = resolved.targets[0]
        let nodes = NodeReader(reader, codec: codec)
        guard try nodes.exists(at: target.path) else { return false }
        let earlier = EarlierPush(value: value, hidesStored: resolved.hidesStored, history: history)
        return try earlier.isSame(as: target) { try nodes.node(at: target.path, bytesMax: $0) }
    }

    // MARK: Targets

    /// The paths of a mutation with their new nodes, after validation.
    static func targets(of mutation: Mutation, _ source: some PathServerValueSource) throws -> [WriteTarget] {
        let path = mutation.path
        switch mutation.operation {
        case .set(let value):
            return [try naming("value") { try WriteTarget(value, at: path, source) }]
        case .push(let value, let key, _):
            let child = try naming("path") {
                try path.requireNode()
                return try path.child(TreeKey(key))
            }
            let source = source.at(child)
            return [try naming("value") { try WriteTarget(value, at: child, source, isNew: true) }]
        case .update(let values):
            try naming("path") { try path.requireNode() }
            return try naming("values") { try updateTargets(values, at: path, source) }
        }
    }

    private static func updateTargets(
        _ values: JSONObject, at path: TreePath, _ source: some PathServerValueSource
    ) throws -> [WriteTarget] {
        var targets: [WriteTarget] = []
        targets.reserveCapacity(values.count)
        for member in values.members {
            let relative = try TreePath(member.name)
            guard !relative.isRoot else {
                throw ArgumentError(
                    reason: "invalid_path",
                    "The name \(member.name.debugDescription) is no path below the updated node, e.g. \"members/masuo\"; use set"
                )
            }
            let place = try path.appending(relative)
            targets.append(try WriteTarget(member.value, at: place, source.at(place)))
        }
        if targets.count > 1 { try refuseConflicts(targets) }
        return targets
    }

    /// No path of an update may be at or above another. Sorted as rows, a path directly precedes the paths below it.
    private static func refuseConflicts(_ targets: [WriteTarget]) throws {
        // No row is read or written, so any prefix is right.
        let codec = TreeKeyCodec(prefix: [0])
        let sorted = targets.map { codec.key(of: $0.path) }.enumerated().sorted {
            $0.element.lexicographicallyPrecedes($1.element)
        }
        for (upper, lower) in zip(sorted, sorted.dropFirst()) where lower.element.starts(with: upper.element) {
            throw ArgumentError(
                reason: "conflicting_paths",
                "The path \(targets[upper.offset].path) is at or above \(targets[lower.offset].path); "
                    + "an update may set each node only once, e.g. {\"a/b\": 1, \"a/c\": 2}")
        }
    }

    /// Adds the name of the parameter to errors.
    private static func naming<Value>(_ parameter: String, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as ArgumentError {
            throw TreeError.invalid(parameter: parameter, error)
        }
    }

    // MARK: Preconditions

    private func check(
        _ mutation: Mutation, _ history: (any ChangeHistory)?, storedEtag: () throws -> StoredEtag
    ) throws {
        switch mutation.condition {
        case nil: return
        case .etag(let wanted)?:
            let stored = try storedEtag()
            guard stored.etag == wanted else {
                throw TreeError.etagMismatch(etag: stored.etag, value: stored.value)
            }
        case .version(let version)?:
            guard let history, try !history.wasWritten(mutation.path, after: version) else {
                throw TreeError.versionMismatch
            }
        }
    }
}

extension WritePlanner {
    /// The etag of a node, and the node itself unless it is too large for an error.
    private func storedEtag(_ mutation: Mutation, in turn: Turn) throws -> StoredEtag {
        // A priority is small.
        if mutation.path.isPriority { return try hashedEtag(mutation, turn) }
        return try turn.fact(NodeFactKinds.etag, at: mutation.path) { try hashedEtag(mutation, turn) }
    }

    private func hashedEtag(_ mutation: Mutation, _ reader: any TreeReader) throws -> StoredEtag {
        let node = try NodeReader(reader, codec: codec).node(at: mutation.path, bytesMax: mutation.hashedBytesMax)
        return StoredEtag(etag: SimpleHash.etag(node), value: node.byteCount <= smallBytesMax ? node : nil)
    }

    // MARK: Planning before the turn

    /// Plans a write on an older state than the one it will be applied to, so that its turn only has to check the
    /// commits since. A push with a key that is taken changes nothing: `check` decides whether it is a repetition.
    ///
    /// It has no turn, so it neither reads nor fills the planner's cache, which follows the order of application.
    ///
    /// - Throws: `TreeError.tooBig` when the node of a condition is too large, and the errors of the reader.
    public func planAhead(_ resolved: ResolvedMutation, reading reader: any TreeReader) throws -> OptimisticPlan {
        let targets = resolved.targets
        var draft = draft(resolved.mutation, reading: reader)
        let isStored = try isStored(resolved, reading: reader)
        if isStored == nil {
            try draft.write(targets)
            try appendIndexRows(&draft)
        }
        var etag: StoredEtag?
        if case .etag? = resolved.mutation.condition { etag = try hashedEtag(resolved.mutation, reader) }
        let plan = plan(draft, resolved)
        return OptimisticPlan(
            plan: plan, basis: PlanBasis(targets.map(\.path), plan), storedEtag: etag, isStored: isStored)
    }

    private func isStored(_ resolved: ResolvedMutation, reading reader: any TreeReader) throws -> Bool? {
        guard case .push(let value, _, isClientKey: true) = resolved.mutation.operation else { return nil }
        let (nodes, target) = (NodeReader(reader, codec: codec), resolved.targets[0])
        guard try nodes.exists(at: target.path) else { return nil }
        return try EarlierPush(value: value, hidesStored: false).isSame(as: target) {
            try nodes.node(at: target.path, bytesMax: $0)
        }
    }

    /// Checks the condition of a write that was planned ahead, in its turn, when its basis has not changed; for a push
    /// with a key that is taken, that it is a repetition.
    ///
    /// - Throws: `TreeError.keyExists` when the push is no repetition, `.etagMismatch` or `.versionMismatch` when the
    ///   condition does not hold, and the errors of the reader and of the history.
    public func check(
        _ ahead: OptimisticPlan, of resolved: ResolvedMutation, in turn: Turn, history: (any ChangeHistory)?
    ) throws {
        if let isStored = ahead.isStored, case .push(let value, _, _) = resolved.mutation.operation {
            let target = resolved.targets[0]
            let isRepetition =
                try resolved.hidesStored
                ? EarlierPush(value: value, hidesStored: true, history: history).isSame(as: target) { _ in .empty }
                : isStored
            guard isRepetition else { throw TreeError.keyExists(target.path) }
        }
        try check(resolved.mutation, history) {
            try ahead.storedEtag ?? storedEtag(resolved.mutation, in: turn)
        }
    }
}

/// The etag of a stored node; with the node itself when it is small enough for an error.
struct StoredEtag: Sendable {
    var etag: String
    var value: TreeNode?
}

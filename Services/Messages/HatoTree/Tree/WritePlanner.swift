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

    private let memory: ParentMemory?
    private let etags = EtagMemory()
    private let data = DataMemory()
    /// Nil without a `memory` or an `uptime`.
    var emptyRanges: EmptyRanges?

    /// - Parameter memory: Saves pushes their read; see there for its conditions. nil: every plan is made from the
    ///   reader alone.
    /// - Parameter uptime: The time since some fixed moment, for detecting slow reads over empty ranges of rows. nil:
    ///   empty ranges are not cached. It affects what is cached, never what is planned.
    public init(
        codec: TreeKeyCodec, indexes: any IndexSet = NoIndexes(), memory: ParentMemory? = nil,
        uptime: (@Sendable () -> Duration)? = nil
    ) {
        self.codec = codec
        self.indexes = indexes
        self.memory = memory
        emptyRanges = memory == nil ? nil : uptime.map { EmptyRanges(uptime: $0) }
    }

    /// The same planner and caches with other indexes: it replaces this one in the turn of a write that changes indexes
    /// and nothing of the tree.
    public func with(_ indexes: any IndexSet) -> WritePlanner {
        var planner = self
        planner.indexes = indexes
        return planner
    }

    /// The reader in the turn of a write.
    private func inTurn(_ reader: any TreeReader) -> any TreeReader {
        emptyRanges.map { EmptyRangesReader(reader, $0) } ?? reader
    }

    /// Determines the nodes that a mutation writes: values normalised, server values resolved. Rules authorise this
    /// result.
    ///
    /// - Parameter now: milliseconds since 1970, the single time of the write.
    /// - Throws: `TreeError`, or the errors of the reader.
    public func resolve(
        _ mutation: Mutation, reading reader: any TreeReader, at now: Int64
    ) throws -> ResolvedMutation {
        let numbers = StoredNumbers(reader: reader, codec: codec, base: mutation.path, now: now)
        let targets = try Self.targets(of: mutation, numbers)
        return ResolvedMutation(mutation: mutation, now: now, targets: targets, reads: numbers.looks.reads)
    }

    /// The same before its turn, on any thread; nil when the result depends on stored data, as with increments.
    ///
    /// - Throws: `TreeError`.
    public static func resolve(_ mutation: Mutation, at now: Int64) throws -> ResolvedMutation? {
        do {
            return ResolvedMutation(
                mutation: mutation, now: now, targets: try targets(of: mutation, TimeAlone(now: now)), reads: [])
        } catch is TimeAlone.NeedsMore {
            return nil
        }
    }

    /// Plans a resolved mutation.
    ///
    /// - Parameter reader: the same as for `resolve`.
    /// - Throws: `TreeError`, or the errors of the reader.
    public func plan(
        _ resolved: ResolvedMutation, reading reader: any TreeReader, history: (any ChangeHistory)? = nil
    ) throws -> WritePlan {
        let targets = resolved.targets
        if resolved.isConditional {
            try check(resolved.mutation, history) { try storedEtag(resolved.mutation, inTurn(reader)) }
        }
        var draft = draft(inTurn(reader), memory)
        if case .push(let value, _, isClientKey: true) = resolved.mutation.operation {
            let earlier = EarlierPush(value: value, hidesStored: resolved.hidesStored, history: history)
            guard try draft.push(targets[0], unless: earlier) else { return draft.plan(at: resolved.now) }
        } else {
            try draft.write(targets)
        }
        try appendIndexRows(&draft)
        // Last: ranges that are read before do not contain the new rows yet, and would be cached as empty.
        if let emptyRanges { draft.rows.forEachPut { emptyRanges.forget($0) } }
        etags.forget(draft.changes)
        data.forget(draft.changes)
        return plan(draft, resolved)
    }

    private func draft(_ reader: any TreeReader, _ memory: ParentMemory?) -> PlanDraft {
        var draft = PlanDraft(reader: reader, codec: codec, memory: memory, beforeBytesMax: beforeBytesMax)
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

    /// The stored data for rules in the turn of a write, before it is planned: cached until a write changes it.
    public func storedData(reading reader: any TreeReader) -> StoredData {
        StoredData(inTurn(reader), codec: codec, memory: memory == nil ? nil : data, parents: memory)
    }

    /// Resolves and plans a mutation.
    public func plan(
        _ mutation: Mutation, reading reader: any TreeReader, at now: Int64, history: (any ChangeHistory)? = nil
    ) throws -> WritePlan {
        try plan(resolve(mutation, reading: reader, at: now), reading: reader, history: history)
    }

    /// Whether this is a push that an earlier attempt, with the same key of the client, has already written.
    public func isRepeated(
        _ resolved: ResolvedMutation, reading reader: any TreeReader, history: (any ChangeHistory)?
    ) throws -> Bool {
        guard case .push(let value, _, isClientKey: true) = resolved.mutation.operation else { return false }
        let path = resolved.targets[0].path
        let nodes = NodeReader(reader, codec: codec)
        guard try nodes.exists(at: path) else { return false }
        let earlier = EarlierPush(value: value, hidesStored: resolved.hidesStored, history: history)
        return try earlier.isSame(at: path) { try nodes.node(at: path) }
    }

    // MARK: Targets

    /// The paths of a mutation with their new nodes, after validation.
    static func targets(of mutation: Mutation, _ source: some PlacedServerValueSource) throws -> [WriteTarget] {
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
        _ values: JSONObject, at path: TreePath, _ source: some PlacedServerValueSource
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
                    + "one update may set each place only once, e.g. {\"a/b\": 1, \"a/c\": 2}")
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
    ///
    /// A large node is hashed once, however many writes need its etag before it changes, because every other write
    /// waits meanwhile.
    private func storedEtag(_ mutation: Mutation, _ reader: any TreeReader) throws -> StoredEtag {
        if let etag = etags.etag(at: mutation.path) { return StoredEtag(etag: etag, value: nil) }
        let stored = try hashedEtag(mutation, reader)
        if stored.value == nil { etags.remember(stored.etag, at: mutation.path) }
        return stored
    }

    private func hashedEtag(_ mutation: Mutation, _ reader: any TreeReader) throws -> StoredEtag {
        let node = try NodeReader(reader, codec: codec).node(at: mutation.path, bytesMax: mutation.hashedBytesMax)
        let isSmall = node.byteCount <= EtagMemory.smallBytesMax
        return StoredEtag(etag: SimpleHash.etag(node), value: isSmall ? node : nil)
    }

    // MARK: Planning before the turn

    /// Plans a write on an older state than the one it will be applied to, so that its turn only has to check the
    /// commits since. Nil when it can only be planned in its turn: a push that may be a repetition.
    ///
    /// It neither reads nor updates the planner's caches, which follow the order of application: `adopt` updates them.
    public func planAhead(_ resolved: ResolvedMutation, reading reader: any TreeReader) throws -> AheadPlan? {
        let targets = resolved.targets
        var draft = draft(reader, nil)
        if case .push(_, _, isClientKey: true) = resolved.mutation.operation,
            try NodeReader(reader, codec: codec).exists(at: targets[0].path)
        {
            return nil
        }
        try draft.write(targets)
        try appendIndexRows(&draft)
        var etag: StoredEtag?
        if case .etag? = resolved.mutation.condition { etag = try hashedEtag(resolved.mutation, reader) }
        return AheadPlan(
            plan: plan(draft, resolved),
            basis: PlanBasis(targets.map(\.path), draft.changes, unpacked: draft.unpacked.values),
            storedEtag: etag)
    }

    /// Checks the condition of a write that was planned ahead, in its turn, when its basis has not changed.
    public func check(
        _ ahead: AheadPlan, of resolved: ResolvedMutation, reading reader: any TreeReader,
        history: (any ChangeHistory)?
    ) throws {
        try check(resolved.mutation, history) {
            try ahead.storedEtag ?? storedEtag(resolved.mutation, inTurn(reader))
        }
    }

    /// Updates the planner's caches in the turn of the write, directly before its rows are applied.
    public func adopt(_ ahead: AheadPlan) {
        etags.forget(ahead.plan.changes)
        data.forget(ahead.plan.changes)
        if let emptyRanges, !emptyRanges.isEmpty {
            for path in ahead.basis.unpacked + ahead.plan.changes.map(\.path.node) {
                let key = codec.key(of: path)
                emptyRanges.forget(from: key, to: TreeKeyCodec.upperBound(of: key))
            }
        }
        guard let memory else { return }
        for change in ahead.plan.changes where !change.path.isPriority {
            memory.noteWrite(
                at: PlacedPath(change.path, codec), isRemoval: change.isRemoval,
                existsDepth: change.existsDepth)
        }
    }
}

/// The etag of a stored node; with the node itself when it is small enough for an error.
struct StoredEtag {
    var etag: String
    var value: TreeNode?
}

/// A mutation with its target nodes.
public struct ResolvedMutation: Sendable {
    /// Behind one reference, since it is copied often.
    private final class Contents: Sendable {
        let mutation: Mutation
        let now: Int64
        let targets: [WriteTarget]
        let reads: [RulesRead]

        init(_ mutation: Mutation, _ now: Int64, _ targets: [WriteTarget], _ reads: [RulesRead]) {
            self.mutation = mutation
            self.now = now
            self.targets = targets
            self.reads = reads
        }
    }

    private let contents: Contents
    /// See `Mutation.hidesStored`.
    public var hidesStored: Bool

    init(mutation: Mutation, now: Int64, targets: [WriteTarget], reads: [RulesRead]) {
        contents = Contents(mutation, now, targets, reads)
        hidesStored = mutation.hidesStored
    }

    var mutation: Mutation { contents.mutation }
    /// Milliseconds since 1970, the single time of the write.
    public var now: Int64 { contents.now }
    var targets: [WriteTarget] { contents.targets }
    /// The stored numbers to which increments were added: the only stored data that resolving has read.
    public var reads: [RulesRead] { contents.reads }

    var isConditional: Bool { contents.mutation.condition != nil }

    /// Whether planning may read the recent writes.
    public var asksHistory: Bool {
        if case .push(_, _, isClientKey: true) = contents.mutation.operation { return true }
        return isConditional
    }

    /// Whether the write appends a child.
    public var isPush: Bool { if case .push = contents.mutation.operation { true } else { false } }

    /// The targets for rules.
    public var rulesTargets: [RulesTarget] { targets.map { RulesTarget(path: $0.path, node: $0.node) } }
}

/// One path of a write with its new node; at a priority path the priority as a leaf.
struct WriteTarget: Sendable {
    var path: TreePath
    var node: TreeNode
    /// Whether the path is expected to be free: it decides which row is read first.
    let isNew: Bool

    init(_ json: JSONValue, at path: TreePath, _ source: some ServerValueSource, isNew: Bool = false) throws {
        self.path = path
        // Apps generate push keys themselves, and write under them with set and update.
        self.isNew = isNew || path.keys.last?.looksPushed == true
        if path.isPriority {
            let priority = try TreePriority.normalized(json: json, at: path, serverValues: source)
            node = priority.map { .leaf($0.leaf) } ?? .empty
        } else {
            node = try TreeNode(json: json, at: path, serverValues: source)
        }
    }
}

extension TreeKey {
    /// Whether it has the form of a current push key.
    fileprivate var looksPushed: Bool { text.utf8.count == 20 && text.utf8.first == UInt8(ascii: "-") }
}

/// Server values for a node at a path.
protocol PlacedServerValueSource: ServerValueSource {
    /// The same for the node at `path`.
    func at(_ path: TreePath) -> Self
}

/// Server values from the time of the write alone.
struct TimeAlone: PlacedServerValueSource {
    struct NeedsMore: Error {}

    let now: Int64

    func at(_: TreePath) -> TimeAlone { self }

    func number(for value: ServerValue, at _: ServerValuePlace) throws -> Double {
        guard case .timestamp = value else { throw NeedsMore() }
        return Double(now)
    }
}

/// Server values from the stored tree and the time of the write.
struct StoredNumbers: PlacedServerValueSource {
    /// The stored numbers that were read; belongs to one resolution, on its thread.
    final class Looks {
        var reads: [RulesRead] = []
    }

    let looks = Looks()
    let reader: any TreeReader
    let codec: TreeKeyCodec
    var base: TreePath
    let now: Int64

    func at(_ path: TreePath) -> StoredNumbers {
        var copy = self
        copy.base = path
        return copy
    }

    func number(for value: ServerValue, at place: ServerValuePlace) throws -> Double {
        switch value {
        case .timestamp: return Double(now)
        case .increment(let amount):
            let path = TreePath(uncheckedKeys: base.keys + place.keys)
            let nodes = NodeReader(reader, codec: codec)
            looks.reads.append(RulesRead(path: path, aspect: place.isPriority ? .priority : .value))
            let stored = place.isPriority ? try nodes.priority(at: path)?.leaf : try nodes.leaf(at: path)
            if case .number(let number)? = stored { return number + amount }
            return amount
        }
    }
}

/// Distinguishes a repeated push from one whose key is taken.
struct EarlierPush {
    var value: JSONValue
    var hidesStored: Bool
    var history: (any ChangeHistory)?

    /// Whether `value` equals the earlier push at `path`; server values count with their values then.
    func isSame(at path: TreePath, stored: () throws -> TreeNode) throws -> Bool {
        guard let earlier = try hidesStored ? history?.node(pushedAt: path) : stored() else { return false }
        return try WriteTarget(value, at: path, EarlierNumbers(earlier: earlier)).node == earlier
    }
}

/// Server values as resolved by an earlier attempt of the same push.
struct EarlierNumbers: ServerValueSource {
    let earlier: TreeNode

    func number(for _: ServerValue, at place: ServerValuePlace) throws -> Double {
        let path = TreePath(uncheckedKeys: place.keys, isPriority: place.isPriority)
        if case .number(let number)? = earlier.node(at: path).leaf { return number }
        // There was no number, so the nodes differ whatever this returns.
        return 0
    }
}

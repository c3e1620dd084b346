import HatoModel

typealias RulesTest = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> Bool
typealias RulesReading = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> RulesValue
typealias RulesLocating = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> RulesSnapshot

/// The environment of expressions while the rules of one operation are evaluated, and the steps taken so far.
struct RulesEvaluation {
    let auth: RulesAuth
    private let now: Double
    let query: RulesQuery
    let before: any RulesData
    let after: any RulesData

    /// The keys from the root to the rule; more keys may follow.
    var keys: [TreeKey]
    /// The number of keys that lead to the rule.
    var depth = 0
    /// `newData` of the rule, where the write determines all of it.
    var written: TreeNode?

    /// The sub-expression that made the rule false.
    var failed = RulesSpan.nowhere
    /// The error because of which data could not be read.
    private(set) var dataError: (any Error)?
    private(set) var reads: RulesReadSet?
    private let limits: RulesStepLimits
    /// The steps that are left.
    private var ruleSteps = 0
    private var operationSteps: Int
    /// Whether a rule failed because it took too many steps.
    private(set) var hasReachedStepLimit = false

    init(_ situation: RulesContext, keys: [TreeKey], recording reads: RulesReadSet?) {
        auth = situation.auth
        now = Double(situation.now)
        query = situation.query
        before = situation.before
        after = situation.after ?? situation.before
        self.keys = keys
        self.reads = reads
        limits = situation.steps
        operationSteps = situation.steps.operationStepsMax
    }

    // MARK: Steps

    /// Begins a rule of this many expressions.
    mutating func begin(_ count: Int) throws(RulesFailure) {
        ruleSteps = min(limits.ruleStepsMax, operationSteps)
        failed = .nowhere
        try spend(count, .nowhere)
    }

    mutating func spend(_ steps: Int, _ span: RulesSpan) throws(RulesFailure) {
        ruleSteps -= steps
        operationSteps -= steps
        guard ruleSteps < 0 else { return }
        hasReachedStepLimit = true
        throw RulesFailure(
            reason: operationSteps < 0
                ? .tooManyStepsOfOperation(max: limits.operationStepsMax) : .tooManySteps(max: limits.ruleStepsMax),
            span: span)
    }

    /// Runs a regular expression.
    mutating func finds(_ program: RegexProgram, in text: String, _ span: RulesSpan) throws(RulesFailure) -> Bool {
        let allowed = ruleSteps
        var left = allowed
        let found = RegexMatcher.finds(program, in: text, steps: &left)
        try spend(found == nil ? allowed + 1 : allowed - left, span)
        return found ?? false
    }

    /// Milliseconds since 1970; records that the time was read.
    mutating func readTime() -> Double {
        reads?.insertTime()
        return now
    }

    /// Records the sub-expression that made the rule false, and returns false.
    mutating func fail(_ span: RulesSpan) -> Bool {
        failed = span
        return false
    }

    // MARK: Data

    /// `data` or `newData` of the rule, or an ancestor reached by this many `parent()`.
    func here(isAfter: Bool, above ascents: [RulesSpan] = []) throws(RulesFailure) -> RulesSnapshot {
        guard ascents.count <= depth else { throw RulesFailure(reason: .parentOfRoot, span: ascents[depth]) }
        let end = depth - ascents.count
        if end == keys.count { return RulesSnapshot(isAfter: isAfter, keys: keys) }
        var here: [TreeKey] = []
        // Reserves capacity for keys below it.
        here.reserveCapacity(end + 4)
        here.append(contentsOf: keys[..<end])
        return RulesSnapshot(isAfter: isAfter, keys: here)
    }

    mutating func leaf(_ snapshot: RulesSnapshot, _ span: RulesSpan) throws(RulesFailure) -> TreeLeaf? {
        if let node = snapshot.node { return node.leaf }
        return try look(snapshot, .value, span) { data, path in try data.leaf(at: path) } ?? nil
    }

    /// The result of `val()`. The existence of children is read only where there is no primitive; this second read is
    /// not recorded, because every change that affects it affects the value that was read first.
    mutating func value(_ snapshot: RulesSnapshot, _ span: RulesSpan) throws(RulesFailure) -> RulesValue {
        if let leaf = try leaf(snapshot, span) {
            if case .string(let text) = leaf { try spend(text.utf8.count / 16, span) }
            return RulesValue(leaf)
        }
        if let node = snapshot.node { return node.children == nil ? .null : .children }
        if snapshot.isMissing { return .null }
        try spend(RulesLimits.lookSteps, span)
        let (data, path) = (snapshot.isAfter ? after : before, snapshot.path)
        return try reading(span) { () throws in try data.hasChildren(at: path) } ? .children : .null
    }

    mutating func exists(_ snapshot: RulesSnapshot, _ span: RulesSpan) throws(RulesFailure) -> Bool {
        if let node = snapshot.node { return !node.isEmpty }
        return try look(snapshot, .existence, span) { data, path in try data.exists(at: path) } ?? false
    }

    mutating func hasChildren(_ snapshot: RulesSnapshot, _ span: RulesSpan) throws(RulesFailure) -> Bool {
        if let node = snapshot.node { return node.children != nil }
        return try look(snapshot, .children, span) { data, path in try data.hasChildren(at: path) } ?? false
    }

    mutating func priority(_ snapshot: RulesSnapshot, _ span: RulesSpan) throws(RulesFailure) -> TreePriority? {
        if let node = snapshot.node { return node.priority }
        return try look(snapshot, .priority, span) { data, path in try data.priority(at: path) } ?? nil
    }

    /// Nil when the place has a key that no node can have.
    private mutating func look<Found>(
        _ snapshot: RulesSnapshot, _ aspect: RulesRead.Aspect, _ span: RulesSpan,
        _ body: (any RulesData, TreePath) throws -> Found
    ) throws(RulesFailure) -> Found? {
        if snapshot.isMissing { return nil }
        try spend(RulesLimits.lookSteps, span)
        let path = snapshot.path
        reads?.insert(RulesRead(path: path, aspect: aspect))
        let data = snapshot.isAfter ? after : before
        return try reading(span) { () throws in try body(data, path) }
    }

    /// Runs `body` and keeps its error in `dataError`.
    private mutating func reading<Found>(
        _ span: RulesSpan, _ body: () throws -> Found
    ) throws(RulesFailure) -> Found {
        do { return try body() } catch {
            dataError = error
            throw RulesFailure(reason: .data, span: span)
        }
    }
}

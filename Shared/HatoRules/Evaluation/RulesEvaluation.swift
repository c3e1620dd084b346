import HatoModel

typealias RulesTest = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> Bool
typealias RulesReading = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> RulesValue
typealias RulesLocating = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> RulesPlace

/// What expressions see while the rules of one operation are evaluated, and what that has cost so far.
struct RulesEvaluation {
    let auth: RulesAuth
    private let now: Double
    let query: RulesQuery
    let before: any RulesData
    let after: any RulesData

    /// The keys from the root to the rule, and possibly more.
    var keys: [TreeKey]
    /// How many of them lead to the rule.
    var depth = 0
    /// `newData` of the rule, where the write says all of it.
    var written: TreeNode?

    /// The sub-expression that made the rule false.
    var failed = RulesSpan.nowhere
    /// Why data could not be read.
    private(set) var dataError: (any Error)?
    private(set) var reads: RulesReadSet?
    private let limits: RulesStepLimits
    /// What is left of them.
    private var ruleSteps = 0
    private var operationSteps: Int
    /// Whether some rule failed because it took too many.
    private(set) var hasReachedStepLimit = false

    init(_ situation: RulesSituation, keys: [TreeKey], recording reads: RulesReadSet?) {
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

    /// Begins a rule of so many expressions.
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

    /// Milliseconds since 1970, noting that somebody asked.
    mutating func readTime() -> Double {
        reads?.insertTime()
        return now
    }

    /// Notes what made the rule false, and says false.
    mutating func fail(_ span: RulesSpan) -> Bool {
        failed = span
        return false
    }

    // MARK: Data

    /// `data` or `newData` of the rule, or what lies above it by as many `parent()`.
    func here(isAfter: Bool, above ascents: [RulesSpan] = []) throws(RulesFailure) -> RulesPlace {
        guard ascents.count <= depth else { throw RulesFailure(reason: .parentOfRoot, span: ascents[depth]) }
        let end = depth - ascents.count
        if end == keys.count { return RulesPlace(isAfter: isAfter, keys: keys) }
        var here: [TreeKey] = []
        // With room for the way down from there.
        here.reserveCapacity(end + 4)
        here.append(contentsOf: keys[..<end])
        return RulesPlace(isAfter: isAfter, keys: here)
    }

    mutating func leaf(_ place: RulesPlace, _ span: RulesSpan) throws(RulesFailure) -> TreeLeaf? {
        if let node = place.node { return node.leaf }
        return try look(place, .value, span) { data, path in try data.leaf(at: path) } ?? nil
    }

    /// What `val()` gives. Whether there are children is looked up only where there is no primitive; that second look
    /// is not recorded: every change that touches it touches the value that was looked up first.
    mutating func value(_ place: RulesPlace, _ span: RulesSpan) throws(RulesFailure) -> RulesValue {
        if let leaf = try leaf(place, span) {
            if case .string(let text) = leaf { try spend(text.utf8.count / 16, span) }
            return RulesValue(leaf)
        }
        if let node = place.node { return node.children == nil ? .null : .children }
        if place.isMissing { return .null }
        try spend(RulesLimits.lookSteps, span)
        let (data, path) = (place.isAfter ? after : before, place.path)
        return try reading(span) { () throws in try data.hasChildren(at: path) } ? .children : .null
    }

    mutating func exists(_ place: RulesPlace, _ span: RulesSpan) throws(RulesFailure) -> Bool {
        if let node = place.node { return !node.isEmpty }
        return try look(place, .existence, span) { data, path in try data.exists(at: path) } ?? false
    }

    mutating func hasChildren(_ place: RulesPlace, _ span: RulesSpan) throws(RulesFailure) -> Bool {
        if let node = place.node { return node.children != nil }
        return try look(place, .children, span) { data, path in try data.hasChildren(at: path) } ?? false
    }

    mutating func priority(_ place: RulesPlace, _ span: RulesSpan) throws(RulesFailure) -> TreePriority? {
        if let node = place.node { return node.priority }
        return try look(place, .priority, span) { data, path in try data.priority(at: path) } ?? nil
    }

    /// nil where nothing can be.
    private mutating func look<Found>(
        _ place: RulesPlace, _ aspect: RulesRead.Aspect, _ span: RulesSpan,
        _ body: (any RulesData, TreePath) throws -> Found
    ) throws(RulesFailure) -> Found? {
        if place.isMissing { return nil }
        try spend(RulesLimits.lookSteps, span)
        let path = place.path
        reads?.insert(RulesRead(path: path, aspect: aspect))
        let data = place.isAfter ? after : before
        return try reading(span) { () throws in try body(data, path) }
    }

    /// Keeps the error of data that cannot be read.
    private mutating func reading<Found>(
        _ span: RulesSpan, _ body: () throws -> Found
    ) throws(RulesFailure) -> Found {
        do { return try body() } catch {
            dataError = error
            throw RulesFailure(reason: .data, span: span)
        }
    }
}

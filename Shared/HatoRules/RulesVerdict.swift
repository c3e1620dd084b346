public import HatoModel

/// The inputs of a decision: the caller, the query, and the tree before and after the operation.
public struct RulesContext {
    /// The caller, as `auth`.
    public var auth: RulesAuth
    /// Milliseconds since 1970: the single time of the operation.
    public var now: Int64
    /// The tree as it is.
    public var before: any RulesData
    /// The tree as the write leaves it; nil for a read.
    public var after: (any RulesData)?
    /// The query of a read, as `query`.
    public var query: RulesQuery
    /// The limits of the evaluation.
    public var steps = RulesStepLimits()

    public init(
        auth: RulesAuth, now: Int64, before: any RulesData, after: (any RulesData)? = nil,
        query: RulesQuery = RulesQuery()
    ) {
        self.auth = auth
        self.now = now
        self.before = before
        self.after = after
        self.query = query
    }
}

/// One path of a write with its new node, server values resolved; for a path that ends in `.priority` the priority as a
/// leaf.
public struct RulesTarget: Sendable {
    /// The node that is written.
    public var path: TreePath
    /// The new node; empty for a removal.
    public var node: TreeNode

    public init(path: TreePath, node: TreeNode) {
        self.path = path
        self.node = node
    }
}

extension TreeNode {
    /// This tree after all targets were written in one step: a node that loses a child and gets another keeps its
    /// priority.
    public func setting(_ targets: [RulesTarget]) -> TreeNode {
        let nodes = targets.filter { !$0.path.isPriority }
        let ordered = nodes.filter { !$0.node.isEmpty } + nodes.filter(\.node.isEmpty)
        return (ordered + targets.filter(\.path.isPriority)).reduce(self) { $0.setting($1.node, at: $1.path) }
    }
}

/// The decision of rules about an operation.
public enum RulesVerdict: Sendable, Hashable {
    case allowed
    case denied(RulesDenial)

    /// Whether the operation is allowed.
    public var isAllowed: Bool { self == .allowed }
}

/// Why rules refuse an operation.
public struct RulesDenial: Error, Sendable, Hashable {
    /// The path of the refused operation; of an update, the first refused path.
    public var path: TreePath
    /// The `.validate` that failed and its node; nil when no rule grants the operation.
    public var validation: Validation?

    /// A failed `.validate` at a node.
    public struct Validation: Sendable, Hashable {
        /// The node.
        public var path: TreePath
        /// The number of the rule: its index in `Rules.rules`.
        public var rule: Int

        public init(path: TreePath, rule: Int) {
            self.path = path
            self.rule = rule
        }
    }

    public init(path: TreePath, validation: Validation? = nil) {
        self.path = path
        self.validation = validation
    }
}

/// What an evaluation records besides its verdict.
public struct RulesRecording: Sendable {
    /// The reads of the data; nil: not recorded.
    public internal(set) var reads: RulesReadSet?
    /// Every rule that was evaluated, in that order; nil: not recorded.
    public internal(set) var trace: [RulesTraceEntry]?
    /// The number of omitted rules: the first ones, when there are more than the maximum.
    public private(set) var traceLeftOut = 0
    private let traceMax: Int
    /// Whether a rule failed because it would have taken too many steps.
    public internal(set) var hasReachedStepLimit = false

    /// - Parameters:
    ///   - readsMax: the number of reads that are kept individually.
    ///   - traceMax: the number of rules that are kept, the last ones: the rule that refuses an operation is the last.
    public init(
        reads: Bool = false, readsMax: Int = RulesLimits.readsMax, trace: Bool = false, traceMax: Int = .max
    ) {
        self.reads = reads ? RulesReadSet(max: readsMax) : nil
        self.trace = trace ? [] : nil
        self.traceMax = traceMax
    }

    mutating func note(_ entry: RulesTraceEntry) {
        trace?.append(entry)
        // Cuts in batches: each cut moves all entries that stay.
        if let count = trace?.count, count / 2 >= max(traceMax, 16) { cutTrace() }
    }

    mutating func cutTrace() {
        guard let count = trace?.count, count > traceMax else { return }
        trace?.removeFirst(count - traceMax)
        traceLeftOut += count - traceMax
    }
}

/// One rule that was evaluated, and its result.
public struct RulesTraceEntry: Sendable, Hashable {
    /// The node at which it was evaluated.
    public var path: TreePath
    /// Its index in `Rules.rules`.
    public var rule: Int
    /// What the rule evaluated to.
    public var result: Bool
    /// The failure that made it false.
    public var error: String?
    /// The sub-expression that made it false.
    public var failed: Excerpt?

    /// A part of an expression and its position.
    public struct Excerpt: Sendable, Hashable {
        /// The part of the expression.
        public var text: String
        /// The line in the rules text, from 1.
        public var line: Int
        /// The column in the line, from 1.
        public var column: Int

        public init(text: String, line: Int, column: Int) {
            self.text = text
            self.line = line
            self.column = column
        }
    }
}

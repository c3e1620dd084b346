/// The result of a table of cases.
public struct RulesCasesReport: Sendable {
    /// The number of evaluated cases.
    public internal(set) var count = 0
    /// The cases with another verdict than the expected one.
    public internal(set) var failures: [Failure] = []
    /// The rules that the cases have reached.
    public internal(set) var coverage: RulesCoverage

    /// A case whose verdict was not the expected one.
    public struct Failure: Sendable, Hashable {
        /// The index in the table, from 0.
        public var index: Int
        /// The name of the case.
        public var name: String
        /// Whether the operation was expected to be allowed.
        public var expected: Bool
        /// The rules that were evaluated.
        public var trace: [RulesTraceEntry]
    }
}

/// How often each rule was true and false.
public struct RulesCoverage: Sendable {
    /// A rule and how often it was evaluated.
    public struct Entry: Sendable {
        /// The rule.
        public let rule: RulesRule
        /// The line where the rule's expression begins, counted from 1.
        public let line: Int
        /// The column where the rule's expression begins, counted from 1.
        public let column: Int
        public fileprivate(set) var trueCount = 0
        public fileprivate(set) var falseCount = 0

        /// Whether the rule was evaluated.
        public var isReached: Bool { trueCount + falseCount > 0 }

        /// Whether the cases saw both results of the rule; a constant rule `true` or `false` has only one.
        public var isCovered: Bool { !lacksTrue && !lacksFalse && isReached }

        /// Whether it was evaluated and never true, although it could be.
        public var lacksTrue: Bool { isReached && trueCount == 0 && rule.text != "false" }

        /// Whether it was evaluated and never false, although it could be.
        public var lacksFalse: Bool { isReached && falseCount == 0 && rule.text != "true" }
    }

    /// All rules, in the order of the text.
    public private(set) var entries: [Entry]

    init(_ rules: Rules) {
        let source = RulesSource(rules.text)
        entries = rules.rules.map { rule in
            let position = source.problem(RulesFault(offset: rule.offset, message: ""))
            return Entry(rule: rule, line: position.line, column: position.column)
        }
    }

    mutating func add(_ trace: [RulesTraceEntry]) {
        for entry in trace {
            if entry.result { entries[entry.rule].trueCount += 1 } else { entries[entry.rule].falseCount += 1 }
        }
    }
}

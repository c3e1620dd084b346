/// What came of a table of cases.
public struct RulesCasesReport: Sendable {
    /// Cases that were asked.
    public internal(set) var count = 0
    /// The cases whose verdict was another one.
    public internal(set) var failures: [Failure] = []
    /// Which rules the cases have reached.
    public internal(set) var coverage: RulesCoverage

    /// A case whose answer was not the expected one.
    public struct Failure: Sendable, Hashable {
        /// Its place in the table, from 0.
        public var index: Int
        /// The name of the case.
        public var name: String
        /// Whether the operation was expected to be allowed.
        public var expected: Bool
        /// The rules that were evaluated.
        public var trace: [RulesTraceEntry]
    }
}

/// Which rules were ever true and which false.
public struct RulesCoverage: Sendable {
    /// A rule and how often it was evaluated.
    public struct Entry: Sendable {
        /// The rule.
        public let rule: RulesRule
        /// Where the rule's expression begins, counted from 1.
        public let line: Int
        /// Where the rule stands in its line, from 1.
        public let column: Int
        public fileprivate(set) var trueCount = 0
        public fileprivate(set) var falseCount = 0

        /// Whether the rule was evaluated.
        public var isReached: Bool { trueCount + falseCount > 0 }

        /// Whether the table saw both answers of the rule; of `true` or `false` alone there is only one.
        public var isCovered: Bool { !lacksTrue && !lacksFalse && isReached }

        /// Was reached and never true, although it could be.
        public var lacksTrue: Bool { isReached && trueCount == 0 && rule.text != "false" }

        /// Was reached and never false, although it could be.
        public var lacksFalse: Bool { isReached && falseCount == 0 && rule.text != "true" }
    }

    /// All rules, in the order of the text.
    public private(set) var entries: [Entry]

    init(_ rules: Rules) {
        let source = RulesSource(rules.text)
        entries = rules.rules.map { rule in
            let place = source.problem(RulesFault(offset: rule.offset, message: ""))
            return Entry(rule: rule, line: place.line, column: place.column)
        }
    }

    mutating func add(_ trace: [RulesTraceEntry]) {
        for entry in trace {
            if entry.result { entries[entry.rule].trueCount += 1 } else { entries[entry.rule].falseCount += 1 }
        }
    }
}

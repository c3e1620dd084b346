/// The limits of rules.
public enum RulesLimits {
    /// Bytes of a rules text as UTF-8 (spec §1: production documents 256 KB and accepts slightly more).
    public static let documentBytesMax = 512 * 1024
    /// Bytes of a standalone condition, as UTF-8.
    public static let predicateBytesMax = 4_096
    /// UTF-8 bytes of a text that a condition concatenates; with a longer one it does not hold.
    static let predicateTextBytesMax = 1 << 20
    /// Bytes that one evaluation of a condition reads, makes and compares; one that needs more does not hold.
    public static let predicateWorkBytesMax = 8 << 20
    /// Steps of one read of stored data.
    static let lookSteps = 50
    /// Bytes of a text that an expression builds.
    static let textBytesMax = 10 * 1024 * 1024
    /// The nesting depth of brackets: 32 levels of the tree and the values in the deepest.
    static let documentDepthMax = 40
    /// The nesting depth of brackets and signs in one expression: the recursion depth of its parser.
    static let expressionDepthMax = 60
    /// The nesting depth of operators, members and calls, also in long chains: the recursion depth of code that walks
    /// it.
    static let expressionHeightMax = 250
    /// The highest count in a `{n,m}`.
    static let regexRepetitionsMax = 1_000
    /// Instructions of one compiled regular expression.
    static let regexInstructionsMax = 5_000
    /// Instructions of all regular expressions of one document: some 20 MB.
    static let documentRegexInstructionsMax = 500_000
    /// Problems of one document that are reported: the first ones found.
    public static let problemsMax = 1_000
    /// Characters of a name that a problem's message quotes from elsewhere.
    static let quotedNameMax = 100
    /// Reads that a read set keeps individually; beyond them it stands for everything.
    public static let readsMax = 10_000
}

/// The limits of steps. A step is some 10 to 20 ns: one operator, one character of a regular expression in one of its
/// states, 16 bytes of a text; a read of data counts `RulesLimits.lookSteps`.
public struct RulesStepLimits: Sendable, Hashable {
    /// Steps of one rule; a rule that needs more fails.
    public var ruleStepsMax: Int
    /// Steps of all rules of one operation together; when they are used up, every further rule fails.
    public var operationStepsMax: Int

    public init(ruleStepsMax: Int = 1_000_000, operationStepsMax: Int = 20_000_000) {
        self.ruleStepsMax = ruleStepsMax
        self.operationStepsMax = operationStepsMax
    }
}

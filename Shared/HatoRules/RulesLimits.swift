/// What rules may cost at most.
public enum RulesLimits {
    /// Bytes of a rules text as UTF-8 (spec §1: production documents 256 KB and takes a little more).
    public static let documentBytesMax = 512 * 1024
    /// Bytes of a condition that stands by itself, as UTF-8.
    public static let predicateBytesMax = 4_096
    /// UTF-8 of a text that a condition puts together; with a longer one it does not hold.
    static let predicateTextBytesMax = 1 << 20
    /// What one look at stored data counts.
    static let lookSteps = 50
    /// Bytes of a text that an expression makes.
    static let textBytesMax = 10 * 1024 * 1024
    /// Brackets within brackets: 32 levels of the tree and what stands in the deepest.
    static let documentDepthMax = 40
    /// Brackets and signs within each other in one expression: how deep its parser recurses.
    static let expressionDepthMax = 60
    /// Operators, members and calls within each other, also those of long chains: how deep what walks it recurses.
    static let expressionHeightMax = 250
    /// The greatest number in a `{n,m}`.
    static let regexRepetitionsMax = 1_000
    /// Instructions of one compiled regular expression.
    static let regexInstructionsMax = 5_000
    /// Instructions of all regular expressions of one document: some 20 MB.
    static let documentRegexInstructionsMax = 500_000
    /// Problems of one document that are reported: the first ones that are found.
    public static let problemsMax = 1_000
    /// Characters of a name in a problem's message that was not written where the problem is.
    static let quotedNameMax = 100
    /// Places that a read set names one by one; beyond them it stands for everything.
    public static let readsMax = 10_000
}

/// How many steps rules may take. A step is some 10 to 20 ns: one operator, one character of a regular expression at
/// one place of it, 16 bytes of a text; a look at the data counts `RulesLimits.lookSteps`.
public struct RulesStepLimits: Sendable, Hashable {
    /// Of one rule; one that would take more fails.
    public var ruleStepsMax: Int
    /// Of all rules of one operation together; when they are used up, every further rule fails.
    public var operationStepsMax: Int

    public init(ruleStepsMax: Int = 1_000_000, operationStepsMax: Int = 50_000_000) {
        self.ruleStepsMax = ruleStepsMax
        self.operationStepsMax = operationStepsMax
    }
}

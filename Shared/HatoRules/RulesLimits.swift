/// What a rules text may cost at most.
public enum RulesLimits {
    /// Bytes of a rules text as UTF-8 (spec §1: production documents 256 KB and takes a little more).
    public static let documentBytesMax = 512 * 1024
    /// Bytes of a condition that stands by itself, as UTF-8.
    public static let predicateBytesMax = 4_096
    /// UTF-8 of a text that a condition puts together; with a longer one it does not hold.
    static let predicateTextBytesMax = 1 << 20
    /// Brackets within brackets: 32 levels of the tree and what stands in the deepest.
    static let documentDepthMax = 40
    /// Brackets and signs within each other in one expression: how deep its parser recurses.
    static let expressionDepthMax = 60
    /// Operators, members and calls within each other, also those of long chains: how deep what walks it recurses.
    static let expressionHeightMax = 250
}

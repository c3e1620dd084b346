/// A regular expression as instructions of a nondeterministic automaton (Thompson's construction): the time of a match
/// is at most the length of the text times that of the program, for every expression and text.
struct RegexProgram: Sendable {
    enum Instruction: Sendable {
        /// Continues after a scalar of the set.
        case set(RegexSet)
        /// Continues in two states.
        case split(Int, Int)
        case jump(Int)
        case start
        case end
        case match
    }

    let instructions: [Instruction]
    /// Whether a match can only begin at the start of the text.
    let isAnchored: Bool

    init(_ pattern: String, isCaseInsensitive: Bool) throws(RegexFault) {
        let parsed = try RegexParser.parse(pattern, isCaseInsensitive: isCaseInsensitive)
        let measured = try RegexMeasure.simplified(parsed)
        var builder = RegexProgramBuilder(capacity: (measured?.size ?? 0) + 1)
        if let node = measured?.node { builder.append(node) }
        builder.emit(.match)
        instructions = builder.instructions
        isAnchored = (measured?.node).map(Self.beginsAtStart) ?? false
    }

    private static func beginsAtStart(_ node: RegexNode) -> Bool {
        switch node {
        case .start: true
        case .sequence(let nodes): nodes.first.map(beginsAtStart) ?? false
        case .alternatives(let nodes): nodes.allSatisfy(beginsAtStart)
        case .set, .repetition, .end: false
        }
    }
}

/// A regular expression as instructions of a machine that follows every way of matching at once (Thompson's
/// construction): the time of a match is at most the length of the text times that of the program, whatever both say.
struct RegexProgram: Sendable {
    enum Instruction: Sendable {
        /// Goes on behind a scalar of the set.
        case set(RegexSet)
        /// Goes on in two places.
        case split(Int, Int)
        case jump(Int)
        case start
        case end
        case match
    }

    let instructions: [Instruction]
    /// Whether a match can only begin where the text does.
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

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
        let node = try RegexParser.parse(pattern, isCaseInsensitive: isCaseInsensitive)
        var builder = RegexProgramBuilder()
        try builder.append(node)
        try builder.emit(.match)
        instructions = builder.instructions
        isAnchored = Self.beginsAtStart(node)
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

private struct RegexProgramBuilder {
    private(set) var instructions: [RegexProgram.Instruction] = []

    mutating func emit(_ instruction: RegexProgram.Instruction) throws(RegexFault) {
        guard instructions.count < RulesLimits.regexInstructionsMax else { throw .tooLarge }
        instructions.append(instruction)
    }

    mutating func append(_ node: RegexNode) throws(RegexFault) {
        switch node {
        case .set(let set): try emit(.set(set))
        case .start: try emit(.start)
        case .end: try emit(.end)
        case .sequence(let nodes): for node in nodes { try append(node) }
        case .alternatives(let nodes): try appendAlternatives(nodes)
        case .repetition(let node, let minimum, let maximum):
            for _ in 0..<minimum { try append(node) }
            if let maximum {
                try appendOptional(node, times: maximum - minimum)
            } else {
                try appendEndless(node)
            }
        }
    }

    private mutating func appendAlternatives(_ nodes: [RegexNode]) throws(RegexFault) {
        var jumps: [Int] = []
        for node in nodes.dropLast() {
            let split = instructions.count
            try emit(.split(split + 1, split + 1))
            try append(node)
            jumps.append(instructions.count)
            try emit(.jump(0))
            instructions[split] = .split(split + 1, instructions.count)
        }
        if let last = nodes.last { try append(last) }
        for jump in jumps { instructions[jump] = .jump(instructions.count) }
    }

    private mutating func appendOptional(_ node: RegexNode, times: Int) throws(RegexFault) {
        var splits: [Int] = []
        for _ in 0..<times {
            splits.append(instructions.count)
            try emit(.split(0, 0))
            try append(node)
        }
        for split in splits { instructions[split] = .split(split + 1, instructions.count) }
    }

    private mutating func appendEndless(_ node: RegexNode) throws(RegexFault) {
        let split = instructions.count
        try emit(.split(0, 0))
        try append(node)
        try emit(.jump(split))
        instructions[split] = .split(split + 1, instructions.count)
    }
}

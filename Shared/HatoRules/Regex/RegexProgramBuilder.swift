/// Builds the instructions of a measured regular expression.
struct RegexProgramBuilder {
    private(set) var instructions: [RegexProgram.Instruction] = []
    /// The number of visited parts of the expression: the work, which tests bound.
    private(set) var visits = 0

    init(capacity: Int) { instructions.reserveCapacity(capacity) }

    mutating func emit(_ instruction: RegexProgram.Instruction) { instructions.append(instruction) }

    mutating func append(_ node: RegexNode) {
        visits += 1
        switch node {
        case .set(let set): emit(.set(set))
        case .start: emit(.start)
        case .end: emit(.end)
        case .sequence(let nodes): for node in nodes { append(node) }
        case .alternatives(let nodes): appendAlternatives(nodes)
        case .repetition(let node, let minimum, let maximum):
            for _ in 0..<minimum { append(node) }
            if let maximum {
                appendOptional(node, times: maximum - minimum)
            } else {
                appendEndless(node)
            }
        }
    }

    private mutating func appendAlternatives(_ nodes: [RegexNode]) {
        var jumps: [Int] = []
        for node in nodes.dropLast() {
            let split = instructions.count
            emit(.split(split + 1, split + 1))
            append(node)
            jumps.append(instructions.count)
            emit(.jump(0))
            instructions[split] = .split(split + 1, instructions.count)
        }
        if let last = nodes.last { append(last) }
        for jump in jumps { instructions[jump] = .jump(instructions.count) }
    }

    private mutating func appendOptional(_ node: RegexNode, times: Int) {
        var splits: [Int] = []
        for _ in 0..<times {
            splits.append(instructions.count)
            emit(.split(0, 0))
            append(node)
        }
        for split in splits { instructions[split] = .split(split + 1, instructions.count) }
    }

    private mutating func appendEndless(_ node: RegexNode) {
        let split = instructions.count
        emit(.split(0, 0))
        append(node)
        emit(.jump(split))
        instructions[split] = .split(split + 1, instructions.count)
    }
}

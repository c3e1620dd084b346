/// Runs a program over a text: keeps all states of the program that a match may be in, each once, and advances them
/// together one scalar at a time.
struct RegexMatcher {
    private let program: RegexProgram
    /// States that wait for the next scalar.
    private var waiting: [Int] = []
    private var following: [Int] = []
    /// The last position of the text at which each state was entered: none is entered twice.
    private var entered: [Int]
    private var stack: [Int] = []
    /// Splits, jumps and anchors that were passed since steps were last charged.
    private var passed = 0
    private var isMatched = false

    private init(_ program: RegexProgram) {
        self.program = program
        entered = [Int](repeating: -1, count: program.instructions.count)
    }

    /// Whether the expression matches somewhere in the text. Nil when that would take more than `steps`; the steps
    /// taken are deducted from it: one for each scalar, for each state of the program that read it and for every four
    /// states that were passed without reading, and at the beginning one for every sixteen states of the program.
    static func finds(_ program: RegexProgram, in text: String, steps: inout Int) -> Bool? {
        var matcher = RegexMatcher(program)
        return matcher.finds(in: text, steps: &steps)
    }

    private mutating func finds(in text: String, steps: inout Int) -> Bool? {
        steps -= program.instructions.count / 16
        let scalars = text.unicodeScalars
        var index = scalars.startIndex
        var position = 0
        while true {
            let isAtEnd = index == scalars.endIndex
            if position == 0 || !program.isAnchored { enter(0, position, isAtEnd) }
            steps -= 1 + waiting.count + passed / 4
            passed %= 4
            if isMatched { return true }
            if steps < 0 { return nil }
            if isAtEnd || waiting.isEmpty && program.isAnchored { return false }
            let scalar = scalars[index]
            scalars.formIndex(after: &index)
            position += 1
            swap(&waiting, &following)
            waiting.removeAll(keepingCapacity: true)
            let isLast = index == scalars.endIndex
            for instruction in following {
                guard case .set(let set) = program.instructions[instruction], set.contains(scalar) else { continue }
                enter(instruction + 1, position, isLast)
                if isMatched { return true }
            }
        }
    }

    /// Enters a state and all states reached from it without reading.
    private mutating func enter(_ instruction: Int, _ position: Int, _ isAtEnd: Bool) {
        stack.append(instruction)
        while let instruction = stack.popLast() {
            guard entered[instruction] != position else { continue }
            entered[instruction] = position
            switch program.instructions[instruction] {
            case .set:
                waiting.append(instruction)
                continue
            case .jump(let target): stack.append(target)
            case .split(let first, let second):
                stack.append(second)
                stack.append(first)
            case .start: if position == 0 { stack.append(instruction + 1) }
            case .end: if isAtEnd { stack.append(instruction + 1) }
            case .match: isMatched = true
            }
            passed += 1
        }
    }
}

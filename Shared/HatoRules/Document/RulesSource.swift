/// The scalars of a rules text, with the line and column of every offset.
struct RulesSource: Sendable {
    let scalars: [Unicode.Scalar]
    private let lineStarts: [Int]

    init(_ text: String) {
        scalars = Array(text.unicodeScalars)
        var starts = [0]
        for (offset, scalar) in scalars.enumerated() where scalar == "\n" { starts.append(offset + 1) }
        lineStarts = starts
    }

    func problem(_ fault: RulesFault) -> RulesProblem {
        var low = 0
        var high = lineStarts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if lineStarts[middle] <= fault.offset { low = middle } else { high = middle }
        }
        return RulesProblem(line: low + 1, column: fault.offset - lineStarts[low] + 1, message: fault.message)
    }

    func problems(_ faults: [RulesFault]) -> RulesProblems {
        RulesProblems(faults.sorted { $0.offset < $1.offset }.map(problem))
    }
}

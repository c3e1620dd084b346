/// Computes the number of instructions of a regular expression before any is made, and removes parts that make none,
/// such as `(a{0}){1000}`: compiling the rest takes time in proportion to its instructions, whatever the product of its
/// counts.
enum RegexMeasure {
    /// An expression and the number of its instructions, which is at least 1.
    struct Measured {
        var node: RegexNode
        var size: Int
    }

    /// Nil: the expression matches the empty text only and makes no instruction. Throws when it would make too many.
    static func simplified(_ node: RegexNode) throws(RegexFault) -> Measured? {
        switch node {
        case .set, .start, .end: return Measured(node: node, size: 1)
        case .sequence(let nodes): return try sequence(nodes)
        case .alternatives(let nodes): return try alternatives(nodes)
        // A repetition of at most 0 makes no instruction, whatever its size.
        case .repetition(_, _, maximum: 0?): return nil
        case .repetition(let node, let minimum, let maximum):
            guard let inner = try simplified(node) else { return nil }
            let repeated = RegexNode.repetition(inner.node, minimum: minimum, maximum: maximum)
            let optional = maximum.map { ($0 - minimum) * (inner.size + 1) } ?? inner.size + 2
            return try checked(repeated, minimum * inner.size + optional)
        }
    }

    private static func sequence(_ nodes: [RegexNode]) throws(RegexFault) -> Measured? {
        var (kept, size): ([RegexNode], Int) = ([], 0)
        for node in nodes {
            guard let inner = try simplified(node) else { continue }
            kept.append(inner.node)
            size += inner.size
            _ = try checked(inner.node, size)
        }
        return kept.isEmpty ? nil : Measured(node: kept.count == 1 ? kept[0] : .sequence(kept), size: size)
    }

    private static func alternatives(_ nodes: [RegexNode]) throws(RegexFault) -> Measured {
        // A split and a jump for each except the last.
        var (kept, size): ([RegexNode], Int) = ([], 2 * (nodes.count - 1))
        for node in nodes {
            let inner = try simplified(node)
            kept.append(inner?.node ?? .sequence([]))
            size += inner?.size ?? 0
            _ = try checked(node, size)
        }
        return Measured(node: .alternatives(kept), size: size)
    }

    /// One instruction is reserved for the end of the program.
    private static func checked(_ node: RegexNode, _ size: Int) throws(RegexFault) -> Measured {
        guard size < RulesLimits.regexInstructionsMax else { throw .tooLarge }
        return Measured(node: node, size: size)
    }
}

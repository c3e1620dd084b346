import HatoModel

/// Evaluates the rules of one operation, from the root down (spec §9.2).
struct RulesAuthoriser {
    private let root: RulesNode
    private let text: String
    private var evaluation: RulesEvaluation
    /// Computes line numbers; created when a trace needs it.
    private var source: RulesSource?
    private(set) var recording: RulesRecording

    init(_ rules: Rules, _ situation: RulesContext, _ recording: RulesRecording) {
        root = rules.root
        text = rules.text
        self.recording = recording
        evaluation = RulesEvaluation(situation, keys: [], recording: recording.reads)
    }

    /// The recording of the evaluation, with its reads.
    var recorded: RulesRecording {
        var recorded = recording
        recorded.cutTrace()
        recorded.reads = evaluation.reads
        if evaluation.hasReachedStepLimit { recorded.hasReachedStepLimit = true }
        return recorded
    }

    mutating func read(_ path: TreePath) throws -> RulesVerdict {
        evaluation.keys = path.keys
        let target = RulesTarget(path: path, node: .empty)
        return try grantingLevel(.read, target) == nil ? .denied(RulesDenial(path: path)) : .allowed
    }

    mutating func write(_ targets: [RulesTarget]) throws -> RulesVerdict {
        var granted: Grant?
        for target in targets {
            evaluation.keys = target.path.keys
            guard let grant = try grant(target, after: granted) else {
                return .denied(RulesDenial(path: target.path))
            }
            granted = grant
        }
        guard root.hasValidation else { return .allowed }
        var last: TreePath?
        for target in targets {
            evaluation.keys = target.path.keys
            // Nodes above both this target and the previous one were validated for the previous one, with the same
            // result.
            let shared = recording.trace == nil ? last.map { target.path.sharedDepth(with: $0) } : nil
            if let validation = try failedValidation(target, asked: shared) {
                return .denied(RulesDenial(path: target.path, validation: validation))
            }
            last = target.path
        }
        return .allowed
    }

    // MARK: Grants

    /// A target that may be written, and the level of the rule that is true.
    private struct Grant {
        var path: TreePath
        var level: Int
    }

    /// The same for another target. A rule whose node is above both has the same result for both, so that the rules of
    /// a node are not evaluated again for each path of an update below it.
    ///
    /// - Returns: nil when the target may not be written.
    private mutating func grant(_ target: RulesTarget, after earlier: Grant?) throws -> Grant? {
        var asked = -1
        if recording.trace == nil, let earlier {
            let above = min(earlier.path.depth, target.path.depth) - 1
            asked = min(above, earlier.path.sharedDepth(with: target.path))
            if earlier.level <= asked { return Grant(path: target.path, level: earlier.level) }
        }
        return try grantingLevel(.write, target, asked: asked).map { Grant(path: target.path, level: $0) }
    }

    /// The level of the first true rule from the root down to the target; nil: there is none.
    ///
    /// - Parameter asked: the rules down to this level are known to be false.
    private mutating func grantingLevel(
        _ kind: RulesRule.Kind, _ target: RulesTarget, asked: Int = -1
    ) throws -> Int? {
        var node = root
        let depth = target.path.depth
        var level = 0
        while true {
            let rule = kind == .read ? node.rules.read : node.rules.write
            if let rule, level > asked {
                evaluation.written = level == depth && !target.path.isPriority ? target.node : nil
                if try holds(rule, at: level) { return level }
            }
            guard level < depth, let next = node.child(evaluation.keys[level]) else { return nil }
            node = next
            level += 1
        }
    }

    private mutating func holds(_ rule: RulesRule, at depth: Int) throws -> Bool {
        evaluation.depth = depth
        let (result, failure) = try rule.holds(&evaluation)
        if recording.trace != nil { note(rule, result, failure) }
        return result
    }

    // MARK: Validation

    /// The first node, from the root through the target and all nodes written there, whose `.validate` fails; nodes
    /// that do not exist after the write are not validated.
    ///
    /// - Parameter asked: nodes up to this depth above the target have been validated already; nil: none.
    private mutating func failedValidation(_ target: RulesTarget, asked: Int?) throws -> RulesDenial.Validation? {
        var node = root
        let depth = target.path.depth
        for level in 0..<depth {
            if let rule = node.rules.validate, level > asked ?? -1 {
                evaluation.written = nil
                if try !isMet(rule, at: level) { return denial(rule, level) }
            }
            guard let next = node.child(evaluation.keys[level]), next.hasValidation else { return nil }
            node = next
        }
        guard target.path.isPriority else { return try failedValidation(target.node, node) }
        guard let rule = node.rules.validate else { return nil }
        evaluation.written = nil
        return try isMet(rule, at: depth) ? nil : denial(rule, depth)
    }

    /// Whether the rule holds, or its node does not exist after the write.
    private mutating func isMet(_ rule: RulesRule, at depth: Int) throws -> Bool {
        let path = TreePath(uncheckedKeys: Array(evaluation.keys[..<depth]))
        guard try evaluation.after.exists(at: path) else { return true }
        return try holds(rule, at: depth)
    }

    /// Walks the written nodes and their rules in parallel; `evaluation.keys` leads to the node.
    private mutating func failedValidation(_ written: TreeNode, _ node: RulesNode) throws -> RulesDenial.Validation? {
        if written.isEmpty { return nil }
        if let rule = node.rules.validate {
            evaluation.written = written
            let depth = evaluation.keys.count
            if try !holds(rule, at: depth) { return denial(rule, depth) }
        }
        guard let children = written.children else { return nil }
        for child in children {
            guard let next = node.child(child.key), next.hasValidation else { continue }
            evaluation.keys.append(child.key)
            if let invalid = try failedValidation(child.node, next) { return invalid }
            evaluation.keys.removeLast()
        }
        return nil
    }

    private func denial(_ rule: RulesRule, _ depth: Int) -> RulesDenial.Validation {
        RulesDenial.Validation(path: TreePath(uncheckedKeys: Array(evaluation.keys[..<depth])), rule: rule.id)
    }

    // MARK: Trace

    private mutating func note(_ rule: RulesRule, _ result: Bool, _ failure: RulesFailure?) {
        let path = TreePath(uncheckedKeys: Array(evaluation.keys[..<evaluation.depth]))
        var entry = RulesTraceEntry(path: path, rule: rule.id, result: result, error: failure?.message)
        if !result, evaluation.failed != .nowhere {
            let source = self.source ?? RulesSource(text)
            self.source = source
            let position = source.problem(RulesFault(offset: Int(evaluation.failed.start), message: ""))
            entry.failed = RulesTraceEntry.Excerpt(
                text: rule.source.excerpt(evaluation.failed), line: position.line, column: position.column)
        }
        recording.note(entry)
    }
}

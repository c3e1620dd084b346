import HatoModel

/// Moves a place to one below or above it.
typealias RulesDescent = @Sendable (inout RulesSnapshot, inout RulesEvaluation) throws(RulesFailure) -> Void

/// Turns snapshot expressions into closures that compute their place in the tree.
struct RulesSnapshotLowering {
    /// Lowers the parts that are not snapshots.
    let values: RulesLowering

    func locating(_ expression: RulesExpression) -> RulesLocating {
        locating(expression, onlyGoesDown: !expression.asksForParents)
    }

    private func locating(_ expression: RulesExpression, onlyGoesDown: Bool) -> RulesLocating {
        let access = unfolded(expression)
        let start = start(access, onlyGoesDown: onlyGoesDown)
        let descents = access.descents
        switch descents.count {
        case 0: return start
        case 1:
            let descent = descents[0]
            return { evaluation throws(RulesFailure) in
                var snapshot = try start(&evaluation)
                try descent(&snapshot, &evaluation)
                return snapshot
            }
        default:
            return { evaluation throws(RulesFailure) in
                var snapshot = try start(&evaluation)
                for descent in descents { try descent(&snapshot, &evaluation) }
                return snapshot
            }
        }
    }

    /// The child of a snapshot that an argument names.
    func locating(_ expression: RulesExpression, child argument: RulesExpression) -> RulesLocating {
        let (locating, descent) = (locating(expression), descent(argument))
        return { evaluation throws(RulesFailure) in
            var snapshot = try locating(&evaluation)
            try descent(&snapshot, &evaluation)
            return snapshot
        }
    }

    /// `data.parent().child(a)` as the base `data`, the steps up from it, and the steps down after that.
    private struct AccessPath {
        var base: RulesExpression
        /// The leading `parent()` calls.
        var ascents: [RulesSpan] = []
        var descents: [RulesDescent] = []
    }

    private func unfolded(_ expression: RulesExpression) -> AccessPath {
        guard case .call(let target, let arguments) = expression.kind,
            case .member(let object, let name) = target.kind
        else { return AccessPath(base: expression) }
        var access = unfolded(object)
        if name == RulesSnapshotMethod.parent.rawValue {
            if access.descents.isEmpty {
                access.ascents.append(expression.span)
            } else {
                access.descents.append(ascent(expression.span))
            }
            return access
        }
        guard let argument = arguments.first else { return AccessPath(base: expression) }
        access.descents.append(descent(argument))
        return access
    }

    private func start(_ access: AccessPath, onlyGoesDown: Bool) -> RulesLocating {
        let ascents = access.ascents
        switch access.base.kind {
        case .variable("root"):
            return { _ throws(RulesFailure) in
                if let first = ascents.first { throw RulesFailure(reason: .parentOfRoot, span: first) }
                return RulesSnapshot(isAfter: false, keys: [])
            }
        case .variable("data"):
            return { evaluation throws(RulesFailure) in try evaluation.here(isAfter: false, above: ascents) }
        case .conditional(let condition, let first, let second):
            let condition = values.test(condition)
            let branches = [first, second].map { branch in
                // A branch must be a place in the tree if the whole expression goes up from it.
                locating(branch, onlyGoesDown: onlyGoesDown && !branch.asksForParents)
            }
            let (first, second, up) = (branches[0], branches[1], ascents.map(ascent))
            return { evaluation throws(RulesFailure) in
                var snapshot = try condition(&evaluation) ? try first(&evaluation) : try second(&evaluation)
                for ascent in up { try ascent(&snapshot, &evaluation) }
                return snapshot
            }
        default:
            guard onlyGoesDown else {
                return { evaluation throws(RulesFailure) in try evaluation.here(isAfter: true, above: ascents) }
            }
            return { evaluation throws(RulesFailure) in
                if let written = evaluation.written { return RulesSnapshot(written) }
                return try evaluation.here(isAfter: true)
            }
        }
    }

    private func ascent(_ span: RulesSpan) -> RulesDescent {
        { snapshot, _ throws(RulesFailure) in
            if !snapshot.ascend() { throw RulesFailure(reason: .parentOfRoot, span: span) }
        }
    }

    /// To the child that an argument names: literal paths are split once, a lone `$name` is used as a key.
    func descent(_ argument: RulesExpression) -> RulesDescent {
        let span = argument.span
        switch argument.kind {
        case .string(let text):
            guard let path = RulesPath(text) else {
                return { _, _ throws(RulesFailure) in throw RulesFailure(reason: .relativePath, span: span) }
            }
            return { snapshot, _ in
                for part in path.keys { snapshot.descend(part.key, isLegal: part.isLegal) }
            }
        case .variable(let name):
            guard let index = values.wildcards[name] else { break }
            return { snapshot, evaluation in snapshot.descend(evaluation.keys[index]) }
        default: break
        }
        let text = values.text(argument, .argumentIsNoString)
        return { snapshot, evaluation throws(RulesFailure) in
            guard snapshot.descend(along: try text(&evaluation)) else {
                throw RulesFailure(reason: .relativePath, span: span)
            }
        }
    }
}

extension RulesExpression {
    /// Whether this snapshot expression contains a `parent()`.
    var asksForParents: Bool {
        switch kind {
        case .call(let target, _):
            guard case .member(let object, let name) = target.kind else { return false }
            return name == RulesSnapshotMethod.parent.rawValue || object.asksForParents
        case .conditional(_, let first, let second): return first.asksForParents || second.asksForParents
        default: return false
        }
    }
}

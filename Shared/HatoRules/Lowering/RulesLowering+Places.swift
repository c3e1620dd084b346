import HatoModel

/// Goes from a place to one below or above it.
typealias RulesDescent = @Sendable (inout RulesPlace, inout RulesEvaluation) throws(RulesFailure) -> Void

/// Expressions as snapshots.
extension RulesLowering {
    func locating(_ expression: RulesExpression) -> RulesLocating {
        let (base, descents) = unfolded(expression)
        let start = start(base, onlyGoesDown: !expression.asksForParents)
        switch descents.count {
        case 0: return start
        case 1:
            let descent = descents[0]
            return { evaluation throws(RulesFailure) in
                var place = try start(&evaluation)
                try descent(&place, &evaluation)
                return place
            }
        default:
            return { evaluation throws(RulesFailure) in
                var place = try start(&evaluation)
                for descent in descents { try descent(&place, &evaluation) }
                return place
            }
        }
    }

    /// The child of a snapshot that an argument names.
    func locating(_ expression: RulesExpression, child argument: RulesExpression) -> RulesLocating {
        let (locating, descent) = (locating(expression), descent(argument))
        return { evaluation throws(RulesFailure) in
            var place = try locating(&evaluation)
            try descent(&place, &evaluation)
            return place
        }
    }

    /// `root.child(a).parent()` as `root` and what is done to it.
    private func unfolded(_ expression: RulesExpression) -> (RulesExpression, [RulesDescent]) {
        guard case .call(let target, let arguments) = expression.kind,
            case .member(let object, let name) = target.kind
        else { return (expression, []) }
        let (base, descents) = unfolded(object)
        if name == RulesSnapshotMethod.parent.rawValue { return (base, descents + [ascent(expression.span)]) }
        guard let argument = arguments.first else { return (expression, []) }
        return (base, descents + [descent(argument)])
    }

    private func start(_ base: RulesExpression, onlyGoesDown: Bool) -> RulesLocating {
        switch base.kind {
        case .variable("root"): return { _ in RulesPlace(isAfter: false, keys: []) }
        case .variable("data"): return { evaluation in evaluation.here(isAfter: false) }
        case .conditional(let condition, let first, let second):
            let condition = test(condition)
            let (first, second) = (place(first, onlyGoesDown), place(second, onlyGoesDown))
            return { evaluation throws(RulesFailure) in
                try condition(&evaluation) ? try first(&evaluation) : try second(&evaluation)
            }
        default:
            guard onlyGoesDown else { return { evaluation in evaluation.here(isAfter: true) } }
            return { evaluation in
                evaluation.written.map { RulesPlace($0) } ?? evaluation.here(isAfter: true)
            }
        }
    }

    /// A branch of a conditional, which must be a place in the tree if the whole goes up from it.
    private func place(_ branch: RulesExpression, _ onlyGoesDown: Bool) -> RulesLocating {
        let (base, descents) = unfolded(branch)
        let start = start(base, onlyGoesDown: onlyGoesDown && !branch.asksForParents)
        return { evaluation throws(RulesFailure) in
            var place = try start(&evaluation)
            for descent in descents { try descent(&place, &evaluation) }
            return place
        }
    }

    private func ascent(_ span: RulesSpan) -> RulesDescent {
        { place, _ throws(RulesFailure) in
            if !place.ascend() { throw RulesFailure(reason: .parentOfRoot, span: span) }
        }
    }

    /// To the child that an argument names: literal paths are taken apart once, a lone `$name` is a key as it is.
    func descent(_ argument: RulesExpression) -> RulesDescent {
        let span = argument.span
        switch argument.kind {
        case .string(let text):
            guard let path = RulesPath(text) else {
                return { _, _ throws(RulesFailure) in throw RulesFailure(reason: .relativePath, span: span) }
            }
            return { place, _ in
                for part in path.keys { place.descend(part.key, isLegal: part.isLegal) }
            }
        case .variable(let name):
            guard let index = wildcards[name] else { break }
            return { place, evaluation in place.descend(evaluation.keys[index]) }
        default: break
        }
        let text = text(argument, .argumentIsNoString)
        return { place, evaluation throws(RulesFailure) in
            guard place.descend(along: try text(&evaluation)) else {
                throw RulesFailure(reason: .relativePath, span: span)
            }
        }
    }
}

extension RulesExpression {
    /// Whether there is a `parent()` anywhere on the way of this snapshot.
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

public import HatoModel

/// A condition over named JSON values, with the grammar, the operators and the strictness of rule expressions (spec
/// §9.5, §9.6): `after.kind == 'text' && before.status != after.status`.
///
/// A member of a value is its child: `after.author.uid`, or `after['first-name']` where the key is no name; a missing
/// child is `null`, and a leaf with a priority is the leaf. Texts have `length`, `contains`, `beginsWith`, `endsWith`,
/// `toLowerCase` and `toUpperCase`. A condition that cannot be evaluated (a text that is less than a number) does not
/// hold. One evaluation visits each part of the condition at most once, and ends when it has worked on more bytes than
/// `RulesLimits.predicateWorkBytesMax`.
public struct RulesPredicate: Sendable, Hashable {
    /// The expression as it is written.
    public let text: String
    private let expression: RulesExpression

    /// Throws the first problem of a text that is no condition over `names`; its line and column count from 1.
    public init(_ text: String, names: [String]) throws(RulesProblem) {
        let source = RulesSource(text)
        guard text.utf8.count <= RulesLimits.predicateBytesMax else {
            let message = "A condition has at most \(RulesLimits.predicateBytesMax) bytes."
            throw source.problem(RulesFault(offset: 0, message: message))
        }
        self.text = text
        do {
            let located = RulesDocument.LocatedText(
                scalars: source.scalars, offsets: Array(source.scalars.indices), end: source.scalars.count)
            expression = try RulesExpressionParser.parse(located)
            var checker = RulesPredicateChecker(names: names)
            try checker.check(expression)
        } catch {
            throw source.problem(error)
        }
    }

    /// The result of a condition when some values are unknown.
    public enum Truth: Sendable, Hashable {
        case holds
        case doesNotHold
        /// It depends on unknown values.
        case unknown
        /// Its texts are too long for it to be decided.
        case tooMuchWork
    }

    /// Whether it holds for these values; nil is the value of a name without one.
    public func holds(_ value: (String) -> JSONValue?) -> Bool { truth(unknown: [], value) == .holds }

    /// The same when the values of some names are unknown: `before.a == 1 && after.b == 2` does not hold, whatever
    /// `before` is, where `after.b` is 3. A condition that does not hold here does not hold with any values; one that
    /// holds may still fail with some: `before.a < 1 || after.b == 3` where `before.a` is a text.
    public func truth(unknown: Set<String>, _ value: (String) -> JSONValue?) -> Truth {
        withoutActuallyEscaping(value) { value in
            var evaluator = RulesPredicateEvaluator(unknown: unknown, value: value)
            do throws(RulesPredicateEvaluator.Failure) {
                let outcome = try evaluator.value(of: expression)
                return outcome == .bool(true) ? .holds : .doesNotHold
            } catch {
                // Where a side is unknown, the other one may have been too much.
                if evaluator.workLeft < 0 { return .tooMuchWork }
                return error == .unknown ? .unknown : .doesNotHold
            }
        }
    }

    /// The paths that it reads: a name and the keys below it, as far as they are literal; for `after.text.length` the
    /// text.
    public var memberPaths: [[String]] { expression.memberPaths }
}

extension RulesExpression {
    fileprivate var memberPaths: [[String]] {
        if case .member(let text, RulesTextMethod.length) = kind { return text.memberPaths }
        if let memberPath { return [memberPath] }
        if case .call(let target, let arguments) = kind, case .member(let text, _) = target.kind {
            return text.memberPaths + arguments.flatMap(\.memberPaths)
        }
        return parts.flatMap(\.memberPaths)
    }

    /// Nil when it is no chain of keys below a name.
    private var memberPath: [String]? {
        switch kind {
        case .variable(let name): return [name]
        case .member(let parent, let key): return parent.memberPath.map { $0 + [key] }
        case .element(let parent, let key):
            guard case .string(let key) = key.kind else { return nil }
            return parent.memberPath.map { $0 + [key] }
        default: return nil
        }
    }
}

import HatoModel

/// One node of the compiled rules. A literal child hides the wildcard for its key, with everything below (spec §9.1).
final class RulesNode: Sendable {
    struct Rules: Sendable {
        var read: RulesRule?
        var write: RulesRule?
        var validate: RulesRule?
    }

    let literals: [TreeKey: RulesNode]
    let wildcard: RulesNode?
    let rules: Rules
    /// Whether there is a `.validate` here or below: if not, the written nodes are not walked.
    let hasValidation: Bool

    init(literals: [TreeKey: RulesNode] = [:], wildcard: RulesNode? = nil, rules: Rules = Rules()) {
        self.literals = literals
        self.wildcard = wildcard
        self.rules = rules
        hasValidation =
            rules.validate != nil || wildcard?.hasValidation == true
            || literals.values.contains { $0.hasValidation }
    }

    func child(_ key: TreeKey) -> RulesNode? {
        if literals.isEmpty { return wildcard }
        return literals[key] ?? wildcard
    }
}

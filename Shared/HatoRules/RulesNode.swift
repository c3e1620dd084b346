import HatoModel

/// One place of the compiled rules. A literal child hides the wildcard for its key, with all that is below (spec §9.1).
final class RulesNode: Sendable {
    let literals: [TreeKey: RulesNode]
    let wildcard: RulesNode?
    let read: RulesCondition?
    let write: RulesCondition?

    init(
        literals: [TreeKey: RulesNode] = [:], wildcard: RulesNode? = nil, read: RulesCondition? = nil,
        write: RulesCondition? = nil
    ) {
        self.literals = literals
        self.wildcard = wildcard
        self.read = read
        self.write = write
    }

    enum Kind {
        case read
        case write
    }

    func child(_ key: TreeKey) -> RulesNode? { literals[key] ?? wildcard }

    func grants(_ kind: Kind, _ path: TreePath, _ caller: Caller) -> Bool {
        let condition = kind == .read ? read : write
        return condition?.holds(path, caller) ?? false
    }
}

/// What a rule says, as far as the language goes today.
enum RulesCondition: Sendable, Hashable {
    case constant(Bool)
    case isSignedIn
    /// `auth.uid == $x`, where `$x` is this key of the path, counted from 0.
    case isUser(keyAt: Int)

    func holds(_ path: TreePath, _ caller: Caller) -> Bool {
        switch self {
        case .constant(let value): value
        case .isSignedIn: caller != .nobody
        case .isUser(let index): caller.uid.map { path.keys[index].text.hasSameBytes(as: $0) } ?? false
        }
    }
}

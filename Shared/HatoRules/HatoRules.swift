/// Compiles and evaluates the rules language over anything that can be read like a tree.
///
/// `Rules.compile` reads a whole document (spec §9.1) and reports everything that is wrong with it, with line and
/// column. The lexer and parser know the whole language of §9.5; what a rule may say so far is `true`, `false`, `auth
/// != null` and `auth.uid == $x`, and anything else is refused when rules are set, never when they are asked.
/// `RulesPredicate` is one expression that stands outside of a document and asks about values instead of a tree.
public import HatoModel

/// The compiled rules of one database.
public struct Rules: Sendable {
    /// As it was written.
    public let text: String
    /// Where `.indexOn` stands and what it names.
    public let indexes: [RulesIndex]
    let root: RulesNode

    /// Denies everything to users; what a new database begins with.
    public static let denyAll = Rules(text: "{\"rules\": {}}", indexes: [], root: RulesNode())

    /// Compiles a rules text. Throws every problem that was found, in the order of the text.
    public static func compile(_ text: String) throws(RulesProblems) -> Rules {
        guard text.utf8.count <= RulesLimits.documentBytesMax else {
            let message = "Rules are longer than \(RulesLimits.documentBytesMax) bytes."
            throw RulesProblems([RulesProblem(line: 1, column: 1, message: message)])
        }
        let source = RulesSource(text)
        var compiler = RulesCompiler()
        let root: RulesNode
        do {
            root = try compiler.compile(RulesDocumentParser.parse(source))
        } catch {
            throw source.problems([error])
        }
        guard compiler.faults.isEmpty else { throw source.problems(compiler.faults) }
        return Rules(text: text, indexes: compiler.indexes, root: root)
    }

    /// Whether `caller` may read the node at `path`: some `.read` from the root down to it must grant it. What lies
    /// below the path is never asked.
    public func mayRead(_ path: TreePath, as caller: Caller) -> Bool {
        caller.isAdministrator || isGranted(.read, path, caller)
    }

    /// Whether `caller` may write every one of `paths`, each on its own: one denial refuses all.
    public func mayWrite(_ paths: some Sequence<TreePath>, as caller: Caller) -> RulesVerdict {
        if caller.isAdministrator { return .allowed }
        for path in paths where !isGranted(.write, path, caller) { return .denied(path) }
        return .allowed
    }

    public func mayWrite(_ path: TreePath, as caller: Caller) -> RulesVerdict {
        mayWrite(CollectionOfOne(path), as: caller)
    }

    private func isGranted(_ kind: RulesNode.Kind, _ path: TreePath, _ caller: Caller) -> Bool {
        var node = root
        if node.grants(kind, path, caller) { return true }
        for key in path.keys {
            guard let next = node.child(key) else { return false }
            node = next
            if node.grants(kind, path, caller) { return true }
        }
        return false
    }
}

/// What rules say to a write.
public enum RulesVerdict: Sendable, Hashable {
    case allowed
    /// The first path of the write that no rule grants.
    case denied(TreePath)

    public var isAllowed: Bool { self == .allowed }
}

/// One `.indexOn`: the collections at the places of a pattern are indexed by what their children hold at `on`.
public struct RulesIndex: Sendable, Hashable {
    public enum Segment: Sendable, Hashable {
        case key(TreeKey)
        /// Any key but those that stand literally beside the wildcard, which they hide it from.
        case wildcard(String, except: Set<TreeKey>)
    }

    public enum Target: Sendable, Hashable {
        case child(TreePath)
        case value
    }

    public var segments: [Segment]
    public var target: Target

    public init(segments: [Segment], target: Target) {
        self.segments = segments
        self.target = target
    }
}

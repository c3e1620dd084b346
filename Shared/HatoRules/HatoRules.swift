/// Compiles and evaluates the rules language over anything that can be read like a tree.
///
/// `Rules.compile` reads a whole document (spec realtime-database §9.1) and reports every problem with line and column:
/// `Document/` parses JSON with comments, `Expression/` the expressions in it, `Typing/` checks their types,
/// `Lowering/` turns them into closures. `Evaluation/` has the inputs of an evaluation: the caller, the time, the
/// query, and the tree before and after the write as any `RulesData`. `RulesPredicate` is one expression outside of a
/// document, over values instead of a tree.
///
/// Evaluation is pure and bounded (`RulesLimits`, `RulesStepLimits`): regular expressions run in linear time
/// (`Regex/`), and a rule that takes too many steps fails like one that has an error.
public import HatoModel

/// The compiled rules of one database.
public struct Rules: Sendable {
    /// The text as it was written.
    public let text: String
    /// The declared indexes (`.indexOn`).
    public let indexes: [RulesIndex]
    /// Every rule, in the order of the text.
    public let rules: [RulesRule]
    let root: RulesNode

    /// Denies everything to users; the rules of a new database.
    public static let denyAll = Rules(text: "{\"rules\": {}}", indexes: [], rules: [], root: RulesNode())

    /// Compiles a rules text. Throws all problems up to `RulesLimits.problemsMax`, in the order of the text.
    public static func compile(_ text: String) throws(RulesProblems) -> Rules { try compile(text, isStored: false) }

    /// Compiles a rules text that was accepted before, perhaps by an older version: a database must open with the rules
    /// that it has. What is refused since then keeps its meaning here: of two wildcards with the same name on one path
    /// the inner one hides the outer one.
    public static func compile(stored text: String) throws(RulesProblems) -> Rules {
        try compile(text, isStored: true)
    }

    private static func compile(_ text: String, isStored: Bool) throws(RulesProblems) -> Rules {
        guard text.utf8.count <= RulesLimits.documentBytesMax else {
            let message = "Rules are longer than \(RulesLimits.documentBytesMax) bytes."
            throw RulesProblems([RulesProblem(line: 1, column: 1, message: message)])
        }
        let source = RulesSource(text)
        var compiler = RulesCompiler(isStored: isStored)
        let root: RulesNode
        do {
            root = try compiler.compile(RulesDocumentParser.parse(source))
        } catch {
            throw source.problems([error])
        }
        guard compiler.faults.isEmpty else { throw source.problems(compiler.faults) }
        return Rules(text: text, indexes: compiler.indexes, rules: compiler.rules, root: root)
    }

    /// Whether the node at `path` may be read: some `.read` from the root down to it must be true. Rules below the path
    /// are not evaluated. Administrators pass without this method.
    ///
    /// - Throws: the errors of the data.
    public func authoriseRead(_ path: TreePath, _ situation: RulesContext) throws -> RulesVerdict {
        var authoriser = RulesAuthoriser(self, situation, RulesRecording())
        return try authoriser.read(path)
    }

    /// Like `authoriseRead(_:_:)`, with a recording of the evaluation.
    ///
    /// - Throws: the errors of the data.
    public func authoriseRead(
        _ path: TreePath, _ situation: RulesContext, recording: inout RulesRecording
    ) throws -> RulesVerdict {
        var authoriser = RulesAuthoriser(self, situation, recording)
        defer { recording = authoriser.recorded }
        return try authoriser.read(path)
    }

    /// Whether all `targets` may be written at once: for each, some `.write` from the root down to it must be true, and
    /// then every `.validate` of a node that exists after the write, from the root through the target and at all
    /// written nodes. The first target that is refused refuses all.
    ///
    /// - Parameter situation: its `after` is the tree with all targets written.
    /// - Throws: the errors of the data.
    public func authoriseWrite(_ targets: [RulesTarget], _ situation: RulesContext) throws -> RulesVerdict {
        var authoriser = RulesAuthoriser(self, situation, RulesRecording())
        return try authoriser.write(targets)
    }

    /// Like `authoriseWrite(_:_:)`, with a recording of the evaluation.
    ///
    /// - Throws: the errors of the data.
    public func authoriseWrite(
        _ targets: [RulesTarget], _ situation: RulesContext, recording: inout RulesRecording
    ) throws -> RulesVerdict {
        var authoriser = RulesAuthoriser(self, situation, recording)
        defer { recording = authoriser.recorded }
        return try authoriser.write(targets)
    }

    /// The path with `*` for each key that the rules do not name literally: `/chats/*/messages/*`. A key that matches a
    /// wildcard, or is not in the rules at all, may contain personal data.
    public func shape(of path: TreePath) -> String {
        if path.keys.isEmpty { return "/" }
        var node: RulesNode? = root
        var text = ""
        for key in path.keys {
            let literal = node?.literals[key]
            text += "/" + (literal == nil ? "*" : key.text)
            node = literal ?? node?.wildcard
        }
        return text
    }

    /// Whether any rule is a `.validate`: only then the written data must be read to authorise a write.
    public var hasValidation: Bool { root.hasValidation }
}

/// One `.indexOn`: the collections that match the pattern are indexed by the value of each child at `target`.
public struct RulesIndex: Sendable, Hashable {
    /// A key or a wildcard of the path to the indexed collections.
    public enum Segment: Sendable, Hashable {
        case key(TreeKey)
        /// Any key except those that are declared literally beside the wildcard, which hide it.
        case wildcard(String, except: Set<TreeKey>)
    }

    /// The indexed part of each child.
    public enum Target: Sendable, Hashable {
        case child(TreePath)
        case value
    }

    /// The keys and wildcards that lead to the indexed collections.
    public var segments: [Segment]
    /// The indexed part of each child.
    public var target: Target

    public init(segments: [Segment], target: Target) {
        self.segments = segments
        self.target = target
    }
}

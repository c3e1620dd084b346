/// Compiles and evaluates the rules language over anything that can be read like a tree.
///
/// `Rules.compile` reads a whole document (spec realtime-database §9.1) and reports everything that is wrong with it,
/// with line and column: `Document/` reads JSON with comments, `Expression/` the expressions in it, `Typing/` says
/// what they are, `Lowering/` turns them into closures. `Evaluation/` is what these see when rules are asked: the
/// caller, the time, the query, and the tree before and after the write as any `RulesData`. `RulesPredicate` is one
/// expression that stands outside of a document and asks about values instead of a tree.
///
/// Evaluation is pure and bounded (`RulesLimits`, `RulesStepLimits`): regular expressions run in linear time
/// (`Regex/`), and a rule that takes too many steps fails like one that goes wrong.
public import HatoModel

/// The compiled rules of one database.
public struct Rules: Sendable {
    /// As it was written.
    public let text: String
    /// Where `.indexOn` stands and what it names.
    public let indexes: [RulesIndex]
    /// Every rule, in the order of the text.
    public let rules: [RulesRule]
    let root: RulesNode

    /// Denies everything to users; what a new database begins with.
    public static let denyAll = Rules(text: "{\"rules\": {}}", indexes: [], rules: [], root: RulesNode())

    /// Compiles a rules text. Throws the problems that were found, in the order of the text: all, up to
    /// `RulesLimits.problemsMax`.
    public static func compile(_ text: String) throws(RulesProblems) -> Rules { try compile(text, isStored: false) }

    /// Compiles a rules text that was taken before, perhaps by an older version: a database must open with the rules
    /// that it has. What is refused since then keeps its meaning here: of two wildcards of one name on one path the
    /// inner one hides the outer one.
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

    /// Whether the node at `path` may be read: some `.read` from the root down to it must be true. What lies below the
    /// path is never asked. Administrators are not asked here: they pass.
    ///
    /// - Throws: what the data throws.
    public func judgeRead(_ path: TreePath, _ situation: RulesSituation) throws -> RulesVerdict {
        var judgement = RulesJudgement(self, situation, RulesRecording())
        return try judgement.read(path)
    }

    /// The same, recording.
    public func judgeRead(
        _ path: TreePath, _ situation: RulesSituation, recording: inout RulesRecording
    ) throws -> RulesVerdict {
        var judgement = RulesJudgement(self, situation, recording)
        defer { recording = judgement.recorded }
        return try judgement.read(path)
    }

    /// Whether all `targets` may be written at once: for each, some `.write` from the root down to it must be true, and
    /// then every `.validate` of a node that will be there, from the root through the target and at all that is
    /// written. The first target that is refused refuses all.
    ///
    /// - Parameter situation: its `after` is the tree with all targets written.
    /// - Throws: what the data throws.
    public func judgeWrite(_ targets: [RulesTarget], _ situation: RulesSituation) throws -> RulesVerdict {
        var judgement = RulesJudgement(self, situation, RulesRecording())
        return try judgement.write(targets)
    }

    /// The same, recording.
    public func judgeWrite(
        _ targets: [RulesTarget], _ situation: RulesSituation, recording: inout RulesRecording
    ) throws -> RulesVerdict {
        var judgement = RulesJudgement(self, situation, recording)
        defer { recording = judgement.recorded }
        return try judgement.write(targets)
    }

    /// A path without the keys that the rules do not name: `/chats/*/messages/*`. What stands for a wildcard, or is
    /// not in the rules at all, may be somebody's name.
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

    /// Whether verdicts can depend on what the tree holds or will hold; if not, it need not be read to judge.
    public var hasValidation: Bool { root.hasValidation }
}

/// One `.indexOn`: the collections at the places of a pattern are indexed by what their children hold at `on`.
public struct RulesIndex: Sendable, Hashable {
    /// A key or a wildcard of the path to the indexed collections.
    public enum Segment: Sendable, Hashable {
        case key(TreeKey)
        /// Any key but those that stand literally beside the wildcard, which they hide it from.
        case wildcard(String, except: Set<TreeKey>)
    }

    /// What of each child is indexed.
    public enum Target: Sendable, Hashable {
        case child(TreePath)
        case value
    }

    /// The keys and wildcards that lead to the indexed collections.
    public var segments: [Segment]
    /// What of each child is indexed.
    public var target: Target

    public init(segments: [Segment], target: Target) {
        self.segments = segments
        self.target = target
    }
}

import HatoModel
import HatoRules

/// The inputs of one evaluation of rules: caller, tree and time.
struct Asking {
    var auth = RulesAuth.nobody
    var data: JSONValue = .null
    var now: Int64 = 1_700_000_000_000
    var query = RulesQuery()

    /// The result of one expression: true, false, or its failure. It is the `.write` rule at `/{$a}/{$b}` of `path`;
    /// `value` is what is written there.
    func outcome(of expression: String, at path: String = "/x/y", writing value: JSONValue = .null) throws -> Outcome {
        let rules = try Self.rules(expression)
        var recording = RulesRecording(trace: true)
        let path = try TreePath(path)
        _ = try authorise(rules, [(path.text, value)], recording: &recording)
        guard let entry = recording.trace?.first else { return .notAsked }
        return entry.error.map { .error($0) } ?? (entry.result ? .true : .false)
    }

    enum Outcome: Hashable {
        case `true`
        case `false`
        case error(String)
        case notAsked

        var isError: Bool { if case .error = self { true } else { false } }
    }

    static func rules(_ expression: String) throws -> Rules {
        var writer = JSONWriter()
        writer.write(["rules": ["$a": ["$b": [".write": .string(expression)]]]] as JSONValue)
        return try Rules.compile(String(decoding: writer.bytes, as: UTF8.self))
    }

    func mayRead(_ rules: Rules, _ path: String) throws -> Bool {
        let situation = RulesContext(auth: auth, now: now, before: try TreeNode(json: data), query: query)
        return try rules.authoriseRead(TreePath(path), situation).isAllowed
    }

    func mayWrite(_ rules: Rules, _ path: String, _ value: JSONValue) throws -> Bool {
        try authorise(rules, [(path, value)]).isAllowed
    }

    func authorise(_ rules: Rules, _ values: [(String, JSONValue)]) throws -> RulesVerdict {
        var recording = RulesRecording()
        return try authorise(rules, values, recording: &recording)
    }

    func authorise(
        _ rules: Rules, _ values: [(String, JSONValue)], recording: inout RulesRecording
    ) throws -> RulesVerdict {
        let before = try TreeNode(json: data)
        let targets = try values.map { path, value in
            RulesTarget(path: try TreePath(path), node: try TreeNode(json: value))
        }
        let situation = RulesContext(
            auth: auth, now: now, before: before, after: before.setting(targets), query: query)
        return try rules.authoriseWrite(targets, situation, recording: &recording)
    }
}

extension RulesAuth {
    static func user(_ uid: String, _ claims: JSONObject = [:]) -> RulesAuth {
        .user(Caller.User(uid: uid, claims: claims))
    }
}

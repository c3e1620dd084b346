public import HatoModel

/// A table of operations with the verdicts that are expected: what `hato-messages rules test` reads.
///
/// ```json
/// {"data": {"members": {"c1": {"masuo": true}}}, "now": 1795000000000,
///  "users": {"admin": {"uid": "sazae", "token": {"admin": true}}},
///  "cases": [
///    {"name": "members post", "operation": "push", "path": "/chats/c1/messages", "value": {"text": "hi"},
///     "as": {"uid": "masuo"}, "allowed": true}]}
/// ```
public struct RulesCases: FieldObject, Hashable {
    /// The file with the rules, relative to the folder of this one; absent: it is given elsewhere.
    public var rules: String?
    /// The tree for every case that has none of its own. No case changes it for the next.
    public var data: JSONValue?
    /// Milliseconds since 1970: `now`, and the server's time in written values.
    public var now: Int64?
    /// Users that cases refer to by name.
    public var users: [String: Messages.Rules.Check.User]?
    public var cases: [Case]

    public static let fields = Fields<Self>(
        blank: Self(cases: []),
        .optional("rules", \.rules),
        .optionalJSON("data", \.data),
        .optional("now", \.now),
        .optional("users", \.users),
        .required("cases", \.cases))

    /// One operation and its expected verdict.
    public struct Case: FieldObject, Hashable {
        public var name: String?
        public var operation: Messages.Rules.Check.Operation
        public var path: TreePath
        /// What `set`, `update` and `push` write; absent: null.
        public var value: JSONValue?
        public var query: TreeQuery?
        /// A name of `users`, or `{"uid": …, "token": {…}}`; null or absent: no signed-in user.
        public var `as`: JSONValue?
        /// Replaces the tree of the table.
        public var data: JSONValue?
        public var now: Int64?
        public var allowed: Bool

        public static let fields = Fields<Self>(
            blank: Self(operation: .get, path: .root, allowed: false),
            .optional("name", \.name),
            .required("operation", \.operation),
            .required("path", \.path),
            .optionalJSON("value", \.value),
            .optional("query", \.query),
            .optionalJSON("as", \.as),
            .optionalJSON("data", \.data),
            .optional("now", \.now),
            .required("allowed", \.allowed))
    }
}

extension RulesCases {
    /// Evaluates every case against `rules`. Throws `ArgumentError` that names the case when the case itself is wrong.
    public func run(over rules: Rules) throws -> RulesCasesReport {
        var report = RulesCasesReport(coverage: RulesCoverage(rules))
        for (index, row) in cases.enumerated() {
            let name = row.name ?? "\(row.operation.rawValue) \(row.path)"
            do {
                var recording = RulesRecording(trace: true)
                let verdict = try evaluate(row, rules, &recording)
                let trace = recording.trace ?? []
                report.coverage.add(trace)
                report.count += 1
                guard verdict.isAllowed != row.allowed else { continue }
                report.failures.append(
                    RulesCasesReport.Failure(index: index, name: name, expected: row.allowed, trace: trace))
            } catch let error as ArgumentError {
                throw ArgumentError(reason: error.reason, "Case \(index + 1) (\(name)): \(error.message)")
            }
        }
        return report
    }

    private func evaluate(_ row: Case, _ rules: Rules, _ recording: inout RulesRecording) throws -> RulesVerdict {
        let now = row.now ?? self.now ?? 0
        let before = try TreeNode(json: row.data ?? data ?? .null)
        var situation = RulesContext(auth: try auth(row), now: now, before: before)
        if row.operation == .get || row.operation == .listen {
            if let query = row.query, !query.isDefault { situation.query = RulesQuery(query) }
            return try rules.authoriseRead(row.path.node, situation, recording: &recording)
        }
        let targets = try targets(row, before, now)
        situation.after = before.setting(targets)
        return try rules.authoriseWrite(targets, situation, recording: &recording)
    }

    private func auth(_ row: Case) throws -> RulesAuth {
        switch row.as {
        case nil, .null?: return .nobody
        case .string(let name)?:
            guard let user = users?[name] else {
                throw ArgumentError(reason: "unknown_user", "\"\(name)\" is none of the users of the table")
            }
            return RulesAuth(user.caller)
        case .some(let json):
            guard case .object(let members) = json, let uid = members["uid"]?.string else {
                throw ArgumentError(
                    reason: "invalid_user", "\"as\" is a name, null, or like {\"uid\": \"masuo\", \"token\": {}}")
            }
            return RulesAuth(.user(Caller.User(uid: uid, claims: members["token"]?.object ?? [:])))
        }
    }

    private func targets(_ row: Case, _ before: TreeNode, _ now: Int64) throws -> [RulesTarget] {
        func target(_ path: TreePath, _ json: JSONValue) throws -> RulesTarget {
            let source = CaseNumbers(before: before, base: path.node, now: Double(now))
            guard path.isPriority else {
                return RulesTarget(path: path, node: try TreeNode(json: json, at: path, serverValues: source))
            }
            let priority = try TreePriority.normalized(json: json, at: path, serverValues: source)
            return RulesTarget(path: path, node: priority.map { .leaf($0.leaf) } ?? .empty)
        }
        switch row.operation {
        case .update:
            guard case .object(let values)? = row.value else {
                throw ArgumentError(reason: "invalid_value", "An update needs an object of paths and values")
            }
            try row.path.requireNode()
            let targets = try values.members.map { try target(row.path.appending(TreePath($0.name)), $0.value) }
            try refuseConflicts(targets.map(\.path))
            return targets
        case .push:
            try row.path.requireNode()
            let key = TreeKey(PushKey(milliseconds: now, random: (0, 0)))
            return [try target(row.path.child(key), row.value ?? .null)]
        default: return [try target(row.path, row.operation == .remove ? .null : row.value ?? .null)]
        }
    }
}

extension RulesCases {
    /// Refuses what the service refuses before it evaluates rules: one path set twice.
    private func refuseConflicts(_ paths: [TreePath]) throws {
        for (index, path) in paths.enumerated() {
            guard let other = paths[(index + 1)...].first(where: { path.isAtOrAbove($0) || $0.isAtOrAbove(path) })
            else {
                continue
            }
            throw ArgumentError(
                reason: "conflicting_paths",
                "\(path) and \(other): one of them is at or above the other; an update may set each node only once")
        }
    }
}

/// Resolves server values with the data and the time of a case.
private struct CaseNumbers: ServerValueSource {
    let before: TreeNode
    let base: TreePath
    let now: Double

    func number(for value: ServerValue, at location: ServerValueLocation) throws -> Double {
        switch value {
        case .timestamp: return now
        case .increment(let amount):
            let path = TreePath(uncheckedKeys: base.keys + location.keys, isPriority: location.isPriority)
            if case .number(let number)? = before.node(at: path).leaf { return number + amount }
            return amount
        }
    }
}

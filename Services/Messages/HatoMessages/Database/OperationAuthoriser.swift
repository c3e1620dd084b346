import HatoModel
import HatoRules
import HatoTree

/// Asks the rules of a database about one operation, at one version of its data: a transaction's or a snapshot's.
struct OperationAuthoriser {
    private let database: Database
    private let stored: StoredData
    private let reader: any TreeReader
    /// Milliseconds since 1970, the one time of the operation.
    private let now: Int64
    /// Whether a refusal has the trace of the evaluated rules.
    private let explains: Bool

    /// By which a repeated push of a user without read access is recognised; nil: it is not.
    private var pushes: (parts: ServiceParts, uid: String?)?
    /// Measures the time that rules take.
    var watch: OperationWatch?
    /// Steps of all rules of a write; nil: as many as the service allows.
    private var stepsMax: Int?

    /// - Parameter stored: nil: as the reader has it, with nothing remembered.
    init(
        _ database: Database, reading reader: any TreeReader, stored: StoredData? = nil, now: Int64,
        explains: Bool = false
    ) {
        self.database = database
        self.reader = reader
        self.now = now
        self.explains = explains
        self.stored = stored ?? StoredData(reader, codec: database.codec)
    }

    /// For a write in its turn: what rules read of stored data is cached for the next one.
    init(_ write: Write, in database: Database, _ turn: Turn, now: Int64, _ parts: ServiceParts) {
        self.init(
            database, reading: turn, stored: database.planner.storedData(in: turn), now: now,
            explains: write.isByAdministrator)
        recognisePushes(of: write.caller, parts)
        watch = write.watch
        stepsMax = write.rulesStepsMax
    }

    /// A repeated push is allowed as the first time.
    mutating func recognisePushes(of caller: Caller, _ parts: ServiceParts) { pushes = (parts, caller.uid) }

    private var rules: Rules { database.rules }

    // MARK: Reads

    func mayRead(_ path: TreePath, _ query: TreeQuery? = nil, as caller: Caller) throws -> Bool {
        if caller.isAdministrator { return true }
        return try database.meter.evaluate(watch) {
            try rules.authoriseRead(path, situation(caller, query), recording: &$0)
        }.isAllowed
    }

    /// Throws `MessagesError.denied` when the rules do not let `caller` read the node.
    func authorise(reading path: TreePath, _ query: TreeQuery? = nil, by caller: Caller) throws {
        guard try !mayRead(path, query, as: caller) else { return }
        throw try refusal(at: path) { _ = try rules.authoriseRead(path, situation(caller, query), recording: &$0) }
    }

    /// What the right of `caller` to read the node rests on: it lasts until one of these changes.
    ///
    /// - Throws: `MessagesError.denied` when there is no such right.
    func reads(behind path: TreePath, _ query: TreeQuery?, by caller: Caller) throws -> RulesReadSet {
        if caller.isAdministrator { return RulesReadSet() }
        var recording = RulesRecording(reads: true)
        let verdict = try database.meter.evaluate(recording: &recording, watch) {
            try rules.authoriseRead(path, situation(caller, query), recording: &$0)
        }
        guard verdict.isAllowed else {
            throw try refusal(at: path) { _ = try rules.authoriseRead(path, situation(caller, query), recording: &$0) }
        }
        return recording.reads ?? RulesReadSet()
    }

    private func situation(_ caller: Caller, _ query: TreeQuery?) -> RulesContext {
        let query = query.flatMap { $0.isDefault ? nil : RulesQuery($0) } ?? RulesQuery()
        var situation = RulesContext(auth: RulesAuth(caller), now: now, before: stored, query: query)
        situation.steps = steps
        return situation
    }

    private var steps: RulesStepLimits {
        var steps = database.meter.steps
        if let stepsMax { steps.operationStepsMax = min(steps.operationStepsMax, stepsMax) }
        return steps
    }

    // MARK: Writes

    /// Throws `MessagesError.denied` when the rules do not let `caller` write all that the mutation puts somewhere.
    func authorise(_ resolved: ResolvedMutation, by caller: Caller) throws {
        var recording = RulesRecording()
        if let refusal = try refusal(of: resolved, by: caller, recording: &recording) { throw refusal }
    }

    /// The same, returning the error instead of throwing it, and recording what it depends on.
    func refusal(
        of resolved: ResolvedMutation, by caller: Caller, recording: inout RulesRecording
    ) throws -> MessagesError? {
        if caller.isAdministrator { return nil }
        let targets = resolved.rulesTargets
        let situation = situation(caller, writing: targets)
        let verdict = try database.meter.evaluate(recording: &recording, watch) {
            try rules.authoriseWrite(targets, situation, recording: &$0)
        }
        guard case .denied(let denial) = verdict else { return nil }
        var retried = resolved
        retried.hidesStored = try !mayRead(targets[0].path.node, as: caller)
        if try isAllowedRetry(retried, situation) { return nil }
        return try refusal(at: denial.path) { _ = try rules.authoriseWrite(targets, situation, recording: &$0) }
    }

    private func situation(_ caller: Caller, writing targets: [RulesTarget]) -> RulesContext {
        var situation = RulesContext(
            auth: RulesAuth(caller), now: now, before: stored, after: WrittenData(targets, over: stored))
        situation.steps = steps
        return situation
    }

    /// A repeated push is authorised as the first time, when its key was free: a rule like `!data.exists()` must not
    /// turn a retry into a refusal. It writes nothing.
    private func isAllowedRetry(_ resolved: ResolvedMutation, _ situation: RulesContext) throws -> Bool {
        let history = pushes.map { CommitHistory(of: database, $0.parts, uid: $0.uid) }
        guard try database.planner.isRepeated(resolved, reading: reader, history: history) else { return false }
        let targets = resolved.rulesTargets
        var situation = situation
        situation.before = WrittenData(targets.map { RulesTarget(path: $0.path, node: .empty) }, over: stored)
        return try rules.authoriseWrite(targets, situation).isAllowed
    }

    /// A condition shows what is stored, by holding or not: it requires read access to its path. Nothing is compared
    /// before that is checked.
    func authorise(conditionOf mutation: Mutation, by caller: Caller) throws {
        guard mutation.condition != nil else { return }
        try authorise(reading: mutation.path.node, by: caller)
    }

    /// Whether the response to a push with the client's key could show `caller` a node without read access.
    func hidesStored(_ mutation: Mutation, from caller: Caller) throws -> Bool {
        guard case .push(_, let key, isClientKey: true) = mutation.operation else { return false }
        return try !mayRead(mutation.path.child(TreeKey(key)), as: caller)
    }

    /// Whether `caller` lacks read access to a path of the write, so that its response must not show whether it changed
    /// anything. (Pushes hide what they find in another way.)
    func hidesOutcome(of resolved: ResolvedMutation, from caller: Caller) throws -> Bool {
        if caller.isAdministrator || resolved.isPush { return false }
        return try !resolved.rulesTargets.allSatisfy { try mayRead($0.path.node, as: caller) }
    }

    /// So many increments are looked at one by one.
    private static let increments = 16

    /// The nodes of a write that its response may show `caller`; nil where an increment has read a number that the
    /// caller may not read.
    func shownNodes(of resolved: ResolvedMutation, to caller: Caller) throws -> [TreeNode]? {
        let reads = resolved.reads
        if caller.isAdministrator || reads.isEmpty { return resolved.writtenNodes }
        if try mayRead(resolved.path.node, as: caller) { return resolved.writtenNodes }
        guard reads.count <= Self.increments, try reads.allSatisfy({ try mayRead($0.path.node, as: caller) }) else {
            return nil
        }
        return resolved.writtenNodes
    }

    // MARK: Reasons

    private func refusal(at path: TreePath, _ again: (inout RulesRecording) throws -> Void) throws -> MessagesError {
        guard explains else { return .denied(path) }
        var recording = RulesRecording(trace: true, traceMax: database.meter.traceMax)
        try again(&recording)
        return .denied(path, trace: RulesTrace(steps: steps(recording), leftOut: recording.traceLeftOut))
    }

    /// The result of `messages.rules.check`: evaluates the rules without writing, with a trace.
    func check(_ request: Messages.Rules.Check) throws -> Messages.Rules.Check.Result {
        try request.checkCombination()
        let caller = request.as?.caller ?? .nobody
        var recording = RulesRecording(trace: true, traceMax: database.meter.traceMax)
        let verdict: RulesVerdict
        if let mutation = try request.mutation(at: now) {
            let targets = try request.naming {
                try database.planner.resolve(mutation, reading: reader, at: now).rulesTargets
            }
            verdict = try rules.authoriseWrite(targets, situation(caller, writing: targets), recording: &recording)
        } else {
            verdict = try rules.authoriseRead(
                request.path.node, situation(caller, request.query), recording: &recording)
        }
        var result = Messages.Rules.Check.Result(allowed: verdict.isAllowed, trace: steps(recording))
        if recording.traceLeftOut > 0 { result.traceLeftOut = recording.traceLeftOut }
        return result
    }

    private func steps(_ recording: RulesRecording) -> [Messages.Rules.Check.Step] {
        (recording.trace ?? []).map { entry in
            let rule = rules.rules[entry.rule]
            var step = Messages.Rules.Check.Step(
                path: entry.path, rule: rule.kind.rawValue, expression: rule.text, result: entry.result)
            step.error = entry.error
            step.failed = entry.failed.map {
                Messages.Rules.Check.Excerpt(expression: $0.text, line: $0.line, column: $0.column)
            }
            return step
        }
    }
}

extension Messages.Rules.Check {
    /// Refuses what the operation does not have, or lacks: who sends it takes the response for one about the operation,
    /// which would be refused itself.
    fileprivate func checkCombination() throws(RPCError) {
        let (takesValue, takesQuery) =
            switch operation {
            case .get, .listen: (false, true)
            case .set, .update, .push: (true, false)
            case .remove: (false, false)
            }
        if !takesValue, value.map({ $0 != .null }) ?? false {
            throw .invalidArgument(
                "value", reason: "not_of_operation",
                "The operation \(operation.rawValue) has no value; set, update and push have one, "
                    + "e.g. {\"operation\": \"set\", \"path\": \"/chats/c1/title\", \"value\": \"磯野家\"}")
        }
        if takesValue, value == nil {
            throw .invalidParams("value", "'value' is missing", reason: "missing_parameter")
        }
        if operation == .listen { try path.requireListenable() }
        if takesQuery, query != nil { try path.requireChildren() }
        if !takesQuery, query != nil {
            throw .invalidArgument(
                "query", reason: "not_of_operation",
                "The operation \(operation.rawValue) has no query; get and listen have one, "
                    + "e.g. {\"operation\": \"get\", \"path\": \"/chats\", \"query\": {\"limitToLast\": 50}}")
        }
    }

    /// What an update calls `values` is the `value` here.
    fileprivate func naming<Outcome>(_ body: () throws -> Outcome) throws -> Outcome {
        do { return try body() } catch TreeError.invalid(parameter: "values", let reason) {
            throw TreeError.invalid(parameter: "value", reason)
        }
    }

    /// The write that is asked about; nil for a read.
    fileprivate func mutation(at now: Int64) throws -> Mutation? {
        switch operation {
        case .get, .listen: return nil
        case .remove: return .remove(at: path)
        case .set: return .set(value ?? .null, at: path)
        case .update:
            guard case .object(let values)? = value else {
                throw RPCError.invalidArgument(
                    "value", reason: "invalid_value",
                    "An update needs an object of paths and values, e.g. {\"title\": \"磯野家\"}")
            }
            return .update(values, at: path)
        case .push:
            var keys = PushKeyGenerator()
            var random = SystemRandomNumberGenerator()
            return .push(value ?? .null, at: path, key: keys.next(now: now, using: &random))
        }
    }
}

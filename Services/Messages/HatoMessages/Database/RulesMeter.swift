import HatoModel
import HatoRules

/// The limits of the evaluation of rules, and its costs so far; one for all databases.
final class RulesMeter: Sendable {
    let steps: RulesStepLimits
    /// The number of rules that a refusal lists.
    let traceMax: Int
    private let metrics: MessagesMetrics

    init(_ limits: MessagesLimits, _ metrics: MessagesMetrics) {
        steps = RulesStepLimits(
            ruleStepsMax: limits.rulesStepsMax, operationStepsMax: limits.rulesOperationStepsMax)
        traceMax = limits.refusalTraceMax
        self.metrics = metrics
    }

    /// Counts and times the evaluation of rules by `body`.
    func evaluate(
        recording: inout RulesRecording, _ watch: OperationWatch?,
        _ body: (inout RulesRecording) throws -> RulesVerdict
    ) rethrows -> RulesVerdict {
        let start = ContinuousClock.now
        let verdict = try body(&recording)
        let time = ContinuousClock.now - start
        metrics.rulesEvaluated(
            isAllowed: verdict.isAllowed, hasReachedStepLimit: recording.hasReachedStepLimit, in: time)
        watch?.rules += time
        return verdict
    }

    /// The same without a recording.
    func evaluate(
        _ watch: OperationWatch?, _ body: (inout RulesRecording) throws -> RulesVerdict
    ) rethrows -> RulesVerdict {
        var recording = RulesRecording()
        return try evaluate(recording: &recording, watch, body)
    }
}

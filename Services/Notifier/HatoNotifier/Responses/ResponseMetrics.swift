import HatoModel
import Metrics

/// What is counted of responses and their effects, exposed from the start.
final class ResponseMetrics: Sendable {
    /// What became of a report.
    enum Result: String, CaseIterable {
        case action, displayed, opened, dismissed, repeated, refused
    }

    private let responses = Result.allCases.map { result in
        Counter(label: "hato_notifier_responses_total", dimensions: [("result", result.rawValue)])
    }
    private let done = Counter(label: "hato_notifier_effects_total", dimensions: [("result", "done")])
    private let refused = Counter(label: "hato_notifier_effects_total", dimensions: [("result", "refused")])
    private let waiting = Gauge(label: "hato_notifier_effects_waiting")
    private let failed = Counter(label: "hato_notifier_effects_total", dimensions: [("result", "failed")])

    func responded(_ result: Result) {
        guard let index = Result.allCases.firstIndex(of: result) else { return }
        responses[index].increment()
    }

    /// More are not counted.
    static let waitingMax = 10_000

    func effectsWait(_ count: Int) { waiting.record(count) }

    /// `result` is what was recorded; nil: nothing was, or not yet.
    func effectEnded(_ outcome: EffectOutcome, _ result: Notifier.Respond.Result?) {
        switch outcome {
        case .done: done.increment()
        case .reported: (result?.effect == .refused ? refused : done).increment()
        case .refused: refused.increment()
        case .again, .keyRefused: failed.increment()
        }
    }
}

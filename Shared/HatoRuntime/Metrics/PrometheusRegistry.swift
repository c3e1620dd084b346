public import Metrics
import Synchronization

/// The metrics of this process, kept in memory and formatted as Prometheus text.
///
/// It is the backend of swift-metrics for every service. Labels of metrics are turned into Prometheus names
/// (`hato_messages_commits`); timers are histograms in seconds, recorders histograms of their own unit.
public final class PrometheusRegistry: MetricsFactory, Sendable {
    struct Identity: Hashable, Comparable {
        var name: String
        var labels: String

        static func < (left: Identity, right: Identity) -> Bool {
            (left.name, left.labels) < (right.name, right.labels)
        }
    }

    private let metrics = Mutex<[Identity: any PrometheusMetric]>([:])
    private let figures = Mutex<[@Sendable () async -> Void]>([])

    public init() {}

    /// Runs `body` before each scrape: for gauges that are not updated as events happen.
    public func beforeScrape(_ body: @escaping @Sendable () async -> Void) { figures.withLock { $0.append(body) } }

    /// The current value of every metric.
    public func scrape() async -> String {
        for body in figures.withLock({ $0 }) { await body() }
        return text()
    }

    /// Every metric, sorted by name and labels.
    public func text() -> String {
        let all = metrics.withLock { $0 }.sorted { $0.key < $1.key }
        var text = ""
        var previous = ""
        for (identity, metric) in all {
            if identity.name != previous { text += "# TYPE \(identity.name) \(metric.type)\n" }
            previous = identity.name
            metric.write(identity.name, identity.labels, into: &text)
        }
        return text
    }

    private func metric<M: PrometheusMetric>(_ label: String, _ dimensions: [(String, String)], _ make: () -> M) -> M {
        let identity = Identity(name: Self.name(label), labels: Self.labels(dimensions))
        return metrics.withLock { metrics in
            if let known = metrics[identity] as? M { return known }
            let new = make()
            // A second use of a name with another type is a programmer error; its values are dropped, and the first
            // stays.
            if metrics[identity] == nil { metrics[identity] = new }
            return new
        }
    }

    static func name(_ label: String) -> String {
        String(label.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == ":") ? $0 : "_" })
    }

    static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { key, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
            return "\(name(key))=\"\(escaped)\""
        }.joined(separator: ",")
    }

    /// Creates a counter that the registry shows.
    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        metric(label, dimensions) { PrometheusCounter() }
    }

    /// Creates a recorder that the registry shows.
    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate
            ? metric(label, dimensions) { PrometheusHistogram(PrometheusHistogram.sizes, divisor: 1) }
            : metric(label, dimensions) { PrometheusGauge() }
    }

    /// Creates a meter that the registry shows.
    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        metric(label, dimensions) { PrometheusGauge() }
    }

    /// Creates a timer that the registry shows.
    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        metric(label, dimensions) { PrometheusHistogram(PrometheusHistogram.seconds, divisor: 1e9) }
    }

    // Handlers stay registered: Prometheus expects counters not to disappear.
    /// Does nothing: what was counted stays.
    public func destroyCounter(_ handler: any CounterHandler) {}
    /// Does nothing: what was recorded stays.
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    /// Does nothing: what was measured stays.
    public func destroyMeter(_ handler: any MeterHandler) {}
    /// Does nothing: what was timed stays.
    public func destroyTimer(_ handler: any TimerHandler) {}
}

protocol PrometheusMetric: AnyObject, Sendable {
    var type: String { get }
    func write(_ name: String, _ labels: String, into text: inout String)
}

extension PrometheusMetric {
    func line(_ name: String, _ labels: String, _ value: Double) -> String {
        let number = value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
        return labels.isEmpty ? "\(name) \(number)\n" : "\(name){\(labels)} \(number)\n"
    }
}

final class PrometheusCounter: PrometheusMetric, CounterHandler {
    private let total = Atomic<Int64>(0)
    var type: String { "counter" }

    func increment(by amount: Int64) { total.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { total.store(0, ordering: .relaxed) }

    func write(_ name: String, _ labels: String, into text: inout String) {
        text += line(name, labels, Double(total.load(ordering: .relaxed)))
    }
}

final class PrometheusGauge: PrometheusMetric, MeterHandler, RecorderHandler {
    private let current = Mutex<Double>(0)
    var type: String { "gauge" }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { current.withLock { $0 = value } }
    func increment(by amount: Double) { current.withLock { $0 += amount } }
    func decrement(by amount: Double) { current.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }

    func write(_ name: String, _ labels: String, into text: inout String) {
        text += line(name, labels, current.withLock { $0 })
    }
}

final class PrometheusHistogram: PrometheusMetric, TimerHandler, RecorderHandler {
    static let seconds = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]
    static let sizes = [
        1.0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536, 262_144, 1_048_576, 16_777_216,
    ]

    private struct State {
        var counts: [UInt64]
        var total: UInt64 = 0
        var sum = 0.0
    }

    private let bounds: [Double]
    private let divisor: Double
    private let state: Mutex<State>
    var type: String { "histogram" }

    init(_ bounds: [Double], divisor: Double) {
        self.bounds = bounds
        self.divisor = divisor
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count)))
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration)) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let value = value / divisor
        let bucket = bounds.firstIndex { value <= $0 }
        state.withLock { state in
            if let bucket { state.counts[bucket] += 1 }
            state.total += 1
            state.sum += value
        }
    }

    func write(_ name: String, _ labels: String, into text: inout String) {
        let state = state.withLock { $0 }
        let separator = labels.isEmpty ? "" : ","
        var below: UInt64 = 0
        for (bound, count) in zip(bounds, state.counts) {
            below += count
            text += line("\(name)_bucket", "\(labels)\(separator)le=\"\(bound)\"", Double(below))
        }
        text += line("\(name)_bucket", "\(labels)\(separator)le=\"+Inf\"", Double(state.total))
        text += line("\(name)_sum", labels, state.sum)
        text += line("\(name)_count", labels, Double(state.total))
    }
}

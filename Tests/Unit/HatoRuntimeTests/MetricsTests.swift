import FoundationEssentials
import Metrics
import Testing

@testable import HatoRuntime

@Suite struct MetricsTests {
    @Test func metricsAreShownAsPrometheusText() {
        let registry = PrometheusRegistry()
        registry.makeCounter(label: "hato.posts", dimensions: [("room", "a\"b")]).increment(by: 3)
        registry.makeCounter(label: "hato.posts", dimensions: [("room", "a\"b")]).increment(by: 1)
        registry.makeMeter(label: "hato_listeners", dimensions: []).set(2.5)
        registry.makeTimer(label: "hato_commit_seconds", dimensions: []).recordNanoseconds(300_000)
        let text = registry.text()
        #expect(text.contains("# TYPE hato_posts counter\nhato_posts{room=\"a\\\"b\"} 4\n"))
        #expect(text.contains("# TYPE hato_listeners gauge\nhato_listeners 2.5\n"))
        #expect(text.contains("hato_commit_seconds_bucket{le=\"0.00025\"} 0\n"))
        #expect(text.contains("hato_commit_seconds_bucket{le=\"0.0005\"} 1\n"))
        #expect(text.contains("hato_commit_seconds_count 1\n"))
    }

    @Test func aScraperGetsThemOverHTTP() async throws {
        let endpoint = try await MetricsEndpoint(host: "127.0.0.1", port: 0) { "hato_up 1\n" }
        let answer = try await RawHTTP.get("127.0.0.1", endpoint.port, path: "/metrics")
        #expect(answer.hasPrefix("HTTP/1.1 200 OK"))
        #expect(answer.hasSuffix("hato_up 1\n"))
        #expect(try await RawHTTP.get("127.0.0.1", endpoint.port, path: "/").hasPrefix("HTTP/1.1 404"))
        await endpoint.stop()
    }
}

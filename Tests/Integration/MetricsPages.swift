import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each service's README names every metric it shows, and no other.
@Suite(.timeLimit(.minutes(5)))
struct MetricsPages {
    @Test(arguments: [TestStack.Service.auth, .messages, .notifier])
    func readmeListsEveryMetric(service: TestStack.Service) async throws {
        let shown = try await TestStack.run { stack in
            try await stack.client(service, as: .administrator).call(Service.Metrics()).text
        }
        let readme = try Self.readme(of: service)
        let names = readme.matches(of: #/(?m)^\| `(hato_[a-z_]+)` \| (counter|gauge|histogram) \|/#)
        let documented = Dictionary(names.map { (String($0.1), String($0.2)) }) { $1 }
        #expect(documented.count == names.count, "a name stands in the README twice")
        // All services of the stack run in one process, so each of them shows the metrics of all.
        let own = shown.matches(of: #/(?m)^# TYPE (hato_[a-z_]+) ([a-z]+)$/#)
            .filter { $0.1.hasPrefix("hato_\(service.rawValue)_") || $0.1.hasPrefix("hato_rpc_") }
        let exposed = Dictionary(own.map { (String($0.1), String($0.2)) }) { $1 }
        #expect(exposed == documented)
    }

    @Test func scrapersGetTheSameOverHTTP() async throws {
        let stack = try await TestStack.start(["--metrics-port", "0"])
        let port = try #require(stack.announcement["metricsPort"]?.number)
        let client = stack.client(.messages, as: .administrator)
        _ = try await client.call(method: "messages.set", params: ["path": "/a", "value": 1])
        let url = try #require(URL(string: "http://127.0.0.1:\(Int(port))/metrics"))
        let (data, _) = try await URLSession.shared.data(from: url)
        let text = String(decoding: data, as: UTF8.self)
        #expect(text.contains("hato_messages_commit_seconds_count"))
        // Figures that are read at a scrape are there the first time, too.
        #expect(text.contains("\nhato_messages_databases 1\n"))
        #expect(text.contains("\nhato_messages_store_kept_changes "))
        await client.close()
        await stack.stop()
    }

    private static func readme(of service: TestStack.Service) throws -> String {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let path = folder.appending(path: "Services/\(service.rawValue.capitalized)/README.md")
        return try String(contentsOf: path, encoding: .utf8)
    }
}

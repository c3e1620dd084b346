import HatoModel
import HatoRPC
import Logging
import NIOHTTP1
import Synchronization
import Testing

@testable import HatoGateway

/// Which clients are served.
@Suite struct ClientGateTests {
    /// Keeps the lines of a log.
    private final class Lines: Sendable {
        private let texts = Mutex<[String]>([])

        var all: [String] { texts.withLock { $0 } }
        func append(_ line: String) { texts.withLock { $0.append(line) } }

        var logger: Logger {
            var logger = Logger(label: "test", factory: { _ in Handler(lines: self) })
            logger.logLevel = .trace
            return logger
        }
    }

    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { lines.append("\(event.message) \(event.metadata ?? [:])") }
    }

    private func gate(_ lines: Lines = Lines(), _ change: (inout GatewayConfiguration) throws -> Void) rethrows
        -> ClientGate
    {
        var configuration = GatewayConfiguration(
            messages: RPCClientConfiguration(host: "127.0.0.1", port: 1), forwardKey: "key", now: { 0 })
        try change(&configuration)
        return ClientGate(configuration, lines.logger)
    }

    private func head(_ headers: HTTPHeaders = [:]) -> HTTPRequestHead {
        HTTPRequestHead(version: .http1_1, method: .GET, uri: "/a.json", headers: headers)
    }

    @Test func connectionsOfAnAddressAreRefusedAndThenDropped() throws {
        let lines = Lines()
        let gate = gate(lines) { $0.limits.connectionsPerAddressMax = 2 }
        let peers = (0..<2).compactMap { _ in gate.connected("203.0.113.7") }
        #expect(peers.count == 2 && peers.allSatisfy { !$0.isRefused } && lines.all.isEmpty)
        let refused = try #require(gate.connected("203.0.113.7"))
        let response = gate.requestBegan(head(), from: refused.address, refused)?.response
        #expect(refused.isRefused && response?.status == .tooManyRequests)
        #expect(response?.headers.first(name: "retry-after") == "10")
        for _ in 1..<AddressLoad.refusedMax { #expect(gate.connected("203.0.113.7")?.isRefused == true) }
        #expect(gate.connected("203.0.113.7") == nil)
        #expect(gate.connected("203.0.113.8")?.isRefused == false)
        // One notice for all of them, with the address and the setting.
        #expect(lines.all.count == 1 && lines.all[0].contains("203.0.113.7"))
        #expect(lines.all[0].contains("connections-per-address-max"))
    }

    @Test func networksOfOneSiteAreBoundedTogether() {
        let gate = gate { ($0.limits.connectionsPerAddressMax, $0.limits.connectionsMax) = (2, 1_000) }
        for number in 0..<8 { #expect(gate.connected("2001:db8:1:\(number / 2)::1")?.isRefused == false) }
        #expect(gate.connected("2001:db8:1:9::1")?.isRefused == true)
        #expect(gate.connected("2001:db8:2::1")?.isRefused == false)
        for number in 0..<20 { #expect(gate.connected("203.0.113.\(number)")?.isRefused == false) }
    }

    @Test(arguments: ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
    func thisMachineIsNotCounted(address: String) throws {
        let gate = gate {
            ($0.limits.connectionsPerAddressMax, $0.limits.requestsPerAddressSecondMax) = (1, 1)
        }
        for _ in 0..<100 {
            let peer = try #require(gate.connected(address))
            #expect(!peer.isRefused && gate.requestBegan(head(), from: address, peer) == nil)
        }
        // Nor is its end.
        let peer = try #require(gate.connected(address))
        for _ in 0..<10 { gate.left(peer) }
        #expect(gate.connected("203.0.113.7")?.isRefused == false && gate.connected("203.0.113.7")?.isRefused == true)
    }

    @Test func aProxyOnThisMachineNamesClientsThatAreCounted() throws {
        let gate = try gate {
            $0.trustedProxies = try TrustedProxies("127.0.0.1")
            $0.limits.requestsPerAddressSecondMax = 1
        }
        let peer = try #require(gate.connected("127.0.0.1"))
        // Each second brings one more.
        let refused = (0..<10_000).first { _ in gate.requestBegan(head(), from: "127.0.0.2", peer) != nil }
        #expect(refused.map { $0 >= 10 } == true)
    }

    @Test func aPeerThatIsNoTrustedProxyIsNamedOnce() throws {
        let lines = Lines()
        let gate = try gate(lines) { $0.trustedProxies = try TrustedProxies("203.0.113.1") }
        let (proxy, other) = (try #require(gate.connected("203.0.113.1")), try #require(gate.connected("203.0.113.2")))
        let forwarded = head(["X-Forwarded-For": "198.51.100.1"])
        #expect(gate.requestBegan(forwarded, from: "198.51.100.1", proxy) == nil && lines.all.isEmpty)
        #expect(gate.requestBegan(head(), from: other.address, other) == nil && lines.all.isEmpty)
        for _ in 0..<5 { #expect(gate.requestBegan(forwarded, from: other.address, other) == nil) }
        #expect(lines.all.count == 1 && lines.all[0].contains("203.0.113.2"))
        #expect(lines.all[0].contains("trusted-proxies") && !lines.all[0].contains("198.51.100.1"))
    }

    @Test func aNoticeComesOnceAMinuteAndCountsTheOthers() {
        var pauses = NoticePauses<Int>()
        #expect(pauses.occurred(1, at: .zero) == 0 && pauses.occurred(1, at: .seconds(59)) == nil)
        #expect(pauses.occurred(2, at: .seconds(59)) == 0 && pauses.occurred(1, at: .seconds(59)) == nil)
        #expect(pauses.occurred(1, at: .seconds(60)) == 2 && pauses.occurred(1, at: .seconds(120)) == 0)
    }
}

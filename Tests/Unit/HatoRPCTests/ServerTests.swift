import HatoModel
import HatoTesting
import Logging
import NIOCore
import Synchronization
import Testing

@testable import HatoRPC

/// Starting, stopping, and what every service answers about itself.
@Suite(.timeLimit(.minutes(10)))
struct ServerTests {
    @Test func healthSaysWhenTheServerIsStopping() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        #expect(try await peer.call("service.health")["result"]?["status"] == "ready")
        // In one write: the second waits behind the first.
        peer.sendLater(
            #"{"jsonrpc":"2.0","id":1,"method":"check.afterEarlier","params":{"gate":"work"}}"# + "\n"
                + #"{"jsonrpc":"2.0","id":2,"method":"service.health"}"# + "\n")
        await service.gates.arrivals(1)
        let stopping = Task { await service.server.shutdown(grace: .seconds(240)) }
        try await eventually("no connection is accepted") { (try? await RawPeer(port: service.port)) == nil }
        service.gates.open("work")
        #expect(try await peer.response()["id"] == 1)
        #expect(try await peer.response()["result"]?["status"] == "stopping")
        await stopping.value
    }

    @Test func serverRefusesToStartWithoutAHandlerForADeclaredMethod() async throws {
        var configuration = RPCServerConfiguration(service: "check", version: "1")
        configuration.methods = [Check.Echo.self, Check.Ordered.self]
        var router = RPCRouter()
        router.handleInOrder(Check.Echo.self) { _, _, reply in reply.succeed(.init(value: nil)) }
        let server = RPCServer(
            configuration, router: router, authenticator: TestAuthenticator(gates: Gates()),
            logger: Logger(label: "check") { _ in SwiftLogNoOpLogHandler() })
        await #expect(throws: RPCServerError.methodsWithoutHandler(["check.afterEarlier"])) { try await server.start() }
    }

    @Test func portInUseFailsTheStart() async throws {
        let service = try await TestService()
        await #expect(throws: RPCServerError.self) {
            _ = try await TestService { $0.port = service.port }
        }
        await service.stop()
    }

    @Test func healthSaysChecksAndUptimeToAdministratorsOnly() async throws {
        let service = try await TestService {
            $0.health = { RPCHealth(.degraded, checks: ["keys": "missing"]) }
        }
        let peer = try await service.peer()
        let open: JSONValue = ["service": "check", "version": "1.2.3", "status": "degraded"]
        #expect(try await peer.call("service.health")["result"] == open)
        #expect(try await peer.call("service.health", #"{"auth":"user-a"}"#)["result"] == open)
        let result = try await peer.call("service.health", #"{"auth":"admin"}"#)["result"]
        #expect(result?["status"] == "degraded")
        #expect(result?["uptimeSeconds"]?.number != nil)
        #expect(result?["checks"] == ["keys": "missing"])
        await service.stop()
    }

    /// It may take reading rows, and any client may ask.
    @Test func healthIsFoundOutOnceForManyCallersInASecond() async throws {
        let asked = Atomic(0)
        let time = Mutex(ContinuousClock.now)
        let recent = RecentHealth(now: { time.withLock { $0 } }) {
            asked.wrappingAdd(1, ordering: .relaxed)
            return RPCHealth(.ready)
        }
        for second in 1...3 {
            for _ in 0..<50 { #expect(await recent.health().status == .ready) }
            #expect(asked.load(ordering: .relaxed) == second)
            time.withLock { $0 += .seconds(1) }
        }
    }

    @Test func healthOfAServerIsFoundOutForAdministratorsAndElseOnceInAWhile() async throws {
        let asked = Atomic(0)
        let service = try await TestService {
            $0.health = {
                asked.wrappingAdd(1, ordering: .relaxed)
                return RPCHealth(.ready)
            }
        }
        let peer = try await service.peer()
        for _ in 0..<5 { _ = try await peer.call("service.health", #"{"auth":"admin"}"#) }
        #expect(asked.load(ordering: .relaxed) == 5)
        let start = ContinuousClock.now
        for _ in 0..<50 { _ = try await peer.call("service.health") }
        // As many as seconds have passed, however slow the machine is.
        let seconds = Int((ContinuousClock.now - start) / .seconds(1)) + 1
        #expect(asked.load(ordering: .relaxed) <= 5 + seconds)
        await service.stop()
    }

    @Test func metricsCountRequests() async throws {
        let service = try await TestService { $0.metrics = { "own_metric 1\n" } }
        let peer = try await service.peer()
        for _ in 0..<3 { _ = try await peer.call("check.echo") }
        _ = try await peer.call("no.such")
        #expect(try await peer.call("service.metrics")["error"]?["code"] == -32001)
        #expect(try await peer.call("service.metrics", #"{"auth":"user-a"}"#)["error"]?["code"] == -32002)
        let response = try await peer.call("service.metrics", #"{"auth":"admin"}"#)
        let text = try #require(response["result"]?["text"]?.string)
        #expect(text.contains("hato_rpc_requests_total{service=\"check\"} 7\n"))
        #expect(text.contains("hato_rpc_errors_total{service=\"check\"} 3\n"))
        #expect(text.contains("hato_rpc_connections{service=\"check\"} 1\n"))
        #expect(text.hasSuffix("own_metric 1\n"))
        await service.stop()
    }

    /// The channel of a connection that is reset would first read everything that the peer has left.
    @Test func whatALostPeerHasLeftIsNotRead() async throws {
        let service = try await TestService()
        let (observer, peer) = (try await service.peer(), try await service.peer())
        _ = try await peer.call("session.authenticate", #"{"auth":"admin"}"#)
        // What is behind it waits for it, and 64 KiB of that are read.
        try await peer.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.afterEarlier","params":{"gate":"never"}}"#)
        await service.gates.arrivals(1)
        peer.sendLater(String(repeating: "\n", count: 300 << 10))
        func metric(_ name: String) async throws -> Int? {
            let response = try await observer.call("service.metrics", #"{"auth":"admin"}"#)
            let line = response["result"]?["text"]?.string?.split(separator: "\n").first { $0.hasPrefix(name) }
            return line?.split(separator: " ").last.flatMap { Int($0) }
        }
        try await eventually("64 KiB are read") { try await metric("hato_rpc_read_bytes_total") ?? 0 > 64 << 10 }
        try await peer.reset()
        try await eventually("it has closed") { try await metric("hato_rpc_connections{") == 1 }
        #expect(try await metric("hato_rpc_read_bytes_total") ?? .max < 160 << 10)
        service.gates.open("never")
        await service.stop()
    }

    @Test func configIsForAdministrators() async throws {
        let service = try await TestService { $0.settings = { ["port": 1] } }
        let peer = try await service.peer()
        #expect(try await peer.call("service.config")["error"]?["code"] == -32001)
        #expect(try await peer.call("service.config", #"{"auth":"user-a"}"#)["error"]?["code"] == -32002)
        #expect(try await peer.call("service.config", #"{"auth":"admin"}"#)["result"] == ["port": 1])
        await service.stop()
    }

    @Test func discoverDescribesEveryMethod() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let document = try await peer.call("rpc.discover")["result"]
        #expect(document?["openrpc"]?.string?.hasPrefix("1.3") == true)
        let names = Set((document?["methods"]?.array ?? []).compactMap { $0["name"]?.string })
        let declared = Set((Check.methods + Service.builtIn).map { $0.method })
        #expect(names == declared)
        await service.stop()
    }

    @Test func stoppingRespondsToWhatWasAccepted() async throws {
        let service = try await TestService()
        let idle = try await service.peer()
        _ = try await idle.call("check.echo")
        let busy = try await service.peer()
        try await busy.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.afterEarlier","params":{"gate":"a"}}"#)
        try await busy.sendLine(#"{"jsonrpc":"2.0","id":2,"method":"check.echo"}"#)
        await service.gates.arrivals(1)
        async let stopped: Void = service.stop()
        try await idle.expectClosed()
        await #expect(throws: (any Error).self) {
            let late = try await service.peer()
            try #require(try await late.line() != nil)
        }
        service.gates.open("a")
        #expect(try await busy.response()["id"] == 1)
        try await eventually("the busy connection closed") { !busy.channel.isActive }
        await stopped
    }

    @Test func stoppingCutsOffWhatTakesTooLong() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.afterEarlier","params":{"gate":"a"}}"#)
        await service.gates.arrivals(1)
        await service.server.shutdown(grace: .milliseconds(100))
        #expect(try await peer.response()["error"]?["data"]?["reason"] == "stopping")
        try await peer.expectClosed()
        service.gates.open("a")
    }
}

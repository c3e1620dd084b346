import HatoModel
import HatoTesting
import NIOCore
import NIOPosix
import TestCertificates
import Testing

@testable import HatoRPC

/// A wire on an event loop of its own, as a test on another thread sees it.
private struct LoopWire: Sendable {
    let loop: any EventLoop
    let kept: Shared<[WireEvent]>
    private let wire: NIOLoopBound<RPCWire>

    init(
        _ configuration: RPCWireConfiguration, react: @escaping @Sendable (RPCWire, WireEvent) -> Void = { _, _ in }
    ) async throws {
        let connector = try RPCWireConnector(configuration)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        self.loop = loop
        (kept, wire) = try await loop.submit {
            let log = WireLog()
            log.react = react
            return (log.kept, NIOLoopBound(connector.connect(on: loop, log), eventLoop: loop))
        }.get()
    }

    var events: [WireEvent] { kept.current }
    var end: RPCWireEnd? { events.last?.end }

    /// Calls the wire on its loop.
    func call<Result: Sendable>(_ body: @escaping @Sendable (RPCWire) -> Result) async throws -> Result {
        try await loop.submit { body(wire.value) }.get()
    }

    func close() async throws {
        try await call { $0.close() }
        try await eventually("the wire ended") { end != nil }
    }
}

/// Copies what comes from the socket.
private final class Tap: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let bytes: Shared<[UInt8]>

    init(_ bytes: Shared<[UInt8]>) { self.bytes = bytes }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let chunk = unwrapInboundIn(data)
        bytes.change { $0 += chunk.readableBytesView }
        context.fireChannelRead(data)
    }
}

/// Wires to services over sockets.
@Suite(.timeLimit(.minutes(10)))
struct WireServiceTests {
    private func configuration(
        _ port: Int, _ change: (inout RPCWireConfiguration) -> Void = { _ in }
    ) -> RPCWireConfiguration {
        var configuration = RPCWireConfiguration(host: "127.0.0.1", port: port)
        change(&configuration)
        return configuration
    }

    @Test func requestsGetTheirResponses() async throws {
        let service = try await TestService()
        let wire = try await LoopWire(configuration(service.port))
        let ids = try await wire.call { wire in
            [wire.send("check.echo", #"{"value":[1,"鳩"]}"#), wire.send("no.such"), wire.send("check.echo")]
        }
        #expect(ids == [1, 2, 3])
        try await eventually("all responses came") { wire.events.count { $0.isMessage } == 3 }
        #expect(wire.events.first == .connected)
        let messages = wire.events.filter(\.isMessage)
        #expect(messages.first == .result(1, #"{"value":[1,"鳩"]}"#) && messages.last == .result(3, "{}"))
        guard case .error(2, let error, let text) = messages[1] else { return #expect(Bool(false), "\(messages)") }
        #expect(error.code == .methodNotFound && text.hasPrefix(#"{"code":-32601"#))
        try await wire.close()
        #expect(wire.events.last == .ended(.closed, []))
        await service.stop()
    }

    /// Responses and notifications of several subscriptions, while the wire pauses now and then: what is delivered is
    /// what came out of the socket, in that order, whole.
    @Test func orderIsThatOfTheSocketUnderLoad() async throws {
        let service = try await TestService()
        let bytes = Shared<[UInt8]>([])
        let (requests, events) = (3_000, 6_000)
        let wire = try await LoopWire(configuration(service.port)) { wire, event in
            switch event {
            case .connected:
                try? wire.line.channel?.pipeline.syncOperations.addHandler(Tap(bytes), position: .first)
                for _ in 0..<8 { _ = wire.send("check.listen") }
            case .result(let id, _) where id > 8 && id.isMultiple(of: 7):
                wire.pause()
                wire.loop.assumeIsolated().execute { wire.resume() }
            case .delivered where wire.requestsInFlight > 0 && wire.requestsInFlight.isMultiple(of: 3): wire.pause()
            default: break
            }
        }
        try await eventually("all listen") { service.listeners.current.count == 8 }
        let listeners = service.listeners.current
        for number in 0..<requests {
            try await wire.call { wire in
                _ = wire.send("check.echo", "{\"value\":\(number)}")
                if number.isMultiple(of: 5) { wire.resume() }
            }
            for event in 0..<events / requests {
                let listener = listeners[(number + event) % 8]
                _ = listener.connection.notify(
                    "check.event", subscription: listener.subscription, members: EncodedJSON("\"n\":\(number),\"m\":{}")
                )
            }
        }
        try await eventually("all came") {
            try await wire.call { $0.resume() }
            return wire.events.count { $0.responseID != nil } == requests + 8
                && wire.events.count { $0.isMessage } == requests + 8 + events
        }
        let delivered = wire.events.filter(\.isMessage)
        #expect(delivered.compactMap(\.responseID) == Array(1...UInt64(requests + 8)))
        let lines = bytes.current.split(separator: UInt8(ascii: "\n")).map { NaiveMessage(Array($0), depth: 64) }
        #expect(lines == delivered.compactMap { NaiveMessage($0) })
        try await wire.close()
        await service.stop()
    }

    @Test func aServiceThatStopsEndsTheWireWithTheRequestsItLeaves() async throws {
        let service = try await TestService()
        let wire = try await LoopWire(configuration(service.port))
        _ = try await wire.call { wire in
            (
                wire.send("check.slow", #"{"gate":"a"}"#), wire.send("check.echo"),
                wire.send("check.later", #"{"gate":"b"}"#)
            )
        }
        try await eventually("the second has its response") { wire.events.contains { $0.responseID == 2 } }
        await service.gates.arrivals(2)
        await service.server.shutdown(grace: .zero)
        try await eventually("the wire ended") { wire.end != nil }
        // The server sends an error for each request that it has, or closes before.
        let ids = wire.events.compactMap(\.responseID)
        guard case .ended(_, let unanswered)? = wire.events.last else { return }
        #expect((ids + unanswered).sorted() == [1, 2, 3])
    }

    @Test func aWireThatDoesNotReadMakesTheServiceWait() async throws {
        let service = try await TestService { $0.limits.unsentNotificationBytesMax = 100_000 }
        let wire = try await LoopWire(configuration(service.port)) { wire, event in
            if event == .connected { _ = wire.send("check.listen") }
            if event.responseID == 1 { wire.pause() }
        }
        try await eventually("it listens") { wire.events.contains { $0.responseID == 1 } }
        let listener = try #require(service.listeners.current.first)
        let members = EncodedJSON("\"text\":\"" + String(repeating: "x", count: 20_000) + "\"")
        let sent = Shared(0)
        try await eventually("the server fell behind") {
            for _ in 0..<200 {
                guard listener.connection.notify("check.event", subscription: listener.subscription, members: members)
                else { return true }
                sent.change { $0 += 1 }
            }
            return false
        }
        #expect(wire.events.count { $0.isMessage } == 1)
        try await wire.call { $0.resume() }
        try await eventually("all came") { wire.events.count { $0.isMessage } == sent.current + 1 }
        try await wire.close()
        await service.stop()
    }

    // MARK: Connecting

    @Test func aPortWithoutAServiceEndsTheWire() async throws {
        let service = try await TestService()
        await service.stop()
        let wire = try await LoopWire(configuration(service.port)) { wire, _ in _ = wire.send("check.echo") }
        let id = try await wire.call { $0.send("check.echo") }
        try await eventually("the wire ended") { wire.end != nil }
        let end = try #require(wire.end)
        #expect(wire.events == [.ended(end, id.map { [$0] } ?? [])])
        guard case .connectFailed(let words) = end else { return #expect(Bool(false), "\(end)") }
        #expect(words.contains("nothing listens there"))
        #expect(end.isBeforeSending && end.error.reason == "cannot_connect" && end.error.isRetryable)
    }

    @Test func anUnknownHostEndsTheWire() async throws {
        let wire = try await LoopWire(RPCWireConfiguration(host: "no.such.host.invalid", port: 1))
        try await eventually("the wire ended") { wire.end != nil }
        #expect(wire.end == .connectFailed("the host is unknown"))
    }

    /// All addresses of a name are tried, and only one connection is made use of.
    @Test func aNameIsConnectedToOnce() async throws {
        let service = try await TestService()
        let wire = try await LoopWire(RPCWireConfiguration(host: "localhost", port: service.port)) { wire, event in
            if event == .connected { _ = wire.send("check.echo") }
        }
        try await eventually("the response came") { wire.events.contains(.result(1, "{}")) }
        #expect(wire.events.filter { $0 != .delivered } == [.connected, .result(1, "{}")])
        try await wire.close()
        await service.stop()
    }

    @Test func aHandshakeThatNeverEndsIsTimedOut() async throws {
        let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let wire = try await LoopWire(
            configuration(silent.localAddress?.port ?? 0) {
                $0.tls = RPCClientTLS()
                $0.connectTimeout = .milliseconds(200)
            })
        try await eventually("the wire ended") { wire.end != nil }
        #expect(wire.events == [.ended(.connectTimedOut(.milliseconds(200)), [])])
        try await silent.close()
    }

    @Test func aWireMayBeClosedWhileItConnects() async throws {
        let service = try await TestService()
        let wire = try await LoopWire(configuration(service.port))
        // The connection may have been made meanwhile.
        try await wire.close()
        #expect(wire.events.filter { $0 != .connected } == [.ended(.closed, [])])
        await service.stop()
    }

    // MARK: TLS

    private func secured(
        _ port: Int, _ certificates: TestCertificates, client: Bool = false
    ) -> RPCWireConfiguration {
        var configuration = RPCWireConfiguration(host: "localhost", port: port)
        configuration.tls = RPCClientTLS(
            authorityFile: certificates.path("ca.pem"), certificateFile: client ? certificates.path("client.pem") : nil,
            keyFile: client ? certificates.path("client.key") : nil)
        return configuration
    }

    private func service(_ certificates: TestCertificates, mutual: Bool = false) async throws -> TestService {
        try await TestService {
            $0.tls = RPCServerTLS(
                certificateFile: certificates.path("server.pem"), keyFile: certificates.path("server.key"),
                clientAuthorityFile: mutual ? certificates.path("ca.pem") : nil)
        }
    }

    @Test(arguments: [false, true]) func requestsGoOverTLS(mutual: Bool) async throws {
        let certificates = try TestCertificates()
        let service = try await service(certificates, mutual: mutual)
        let wire = try await LoopWire(secured(service.port, certificates, client: mutual))
        let long = "{\"value\":\"\(String(repeating: "x", count: 60_000))\"}"
        for _ in 0..<20 { _ = try await wire.call { $0.send("check.echo", long) } }
        try await eventually("all responses came") { wire.events.count { $0.isMessage } == 20 }
        #expect(wire.events.filter(\.isMessage) == (1...20).map { .result($0, long) })
        try await wire.close()
        await service.stop()
    }

    @Test func aServiceOfAnotherAuthorityIsNotConnectedTo() async throws {
        let (certificates, others) = (try TestCertificates(), try TestCertificates())
        let service = try await service(certificates)
        let wire = try await LoopWire(secured(service.port, others))
        let id = try await wire.call { $0.send("check.echo") }
        try await eventually("the wire ended") { wire.end != nil }
        let end = try #require(wire.end)
        #expect(wire.events == [.ended(end, id.map { [$0] } ?? [])] && end.isBeforeSending)
        await service.stop()
    }

    /// TLS 1.3 is refused after the handshake is done on our side.
    @Test func aServiceThatWantsACertificateEndsTheWire() async throws {
        let certificates = try TestCertificates()
        let service = try await service(certificates, mutual: true)
        let wire = try await LoopWire(secured(service.port, certificates))
        let id = try await wire.call { $0.send("check.echo") }
        try await eventually("the wire ended") { wire.end != nil }
        #expect(wire.events.filter { $0 != .connected }.count == 1)
        #expect(wire.events.last == wire.end.map { .ended($0, id.map { [$0] } ?? []) })
        await service.stop()
    }

    @Test func missingFilesAreNamedBeforeAnythingIsCalled() {
        var configuration = RPCWireConfiguration(host: "localhost", port: 1)
        configuration.tls = RPCClientTLS(authorityFile: "/no/such.pem")
        let error = #expect(throws: TLSFileError.self) { _ = try RPCWireConnector(configuration) }
        #expect(error?.description == "/no/such.pem cannot be read: no such file or directory")
    }
}

import HatoModel
import HatoRPC
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import HatoGateway

/// Which connection a single call goes to.
@Suite struct SharedCallTests {
    /// A call behind sixteen others of its turn does not wait for the first of them, nor for a connection being made.
    @Test func aTurnPutsNoMoreThanSixteenCallsOnOneConnection() async throws {
        let counts = try await counts(ofCalls: 40, carriesOutTogether: true)
        #expect(counts == [16, 8, 8, 8])
    }

    /// Auth begins a call when the one before has its response.
    @Test func callsThatWouldWaitForEachOtherAreSpread() async throws {
        let counts = try await counts(ofCalls: 8, carriesOutTogether: false)
        #expect(counts == [2, 2, 2, 2])
    }

    @Test func callsBeyondTheirTimeMakePlaceForOthers() async throws {
        let service = try await SilentService()
        let link = try service.link(carriesOutTogether: true)
        let loop = service.loop
        let (inTurn, outcomes): ([String?], [String?]) = try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                var (inTurn, outcomes): ([String?], [String?]) = ([], [])
                var close: () -> Void = {}
                func ended(_ outcome: SharedWires.Outcome) {
                    outcomes.append(outcome.reason)
                    guard outcomes.count == 2 else { return }
                    continuation.resume(returning: (inTurn, outcomes))
                    close()
                }
                // Nothing is closed before both have their outcome.
                var all: [SharedWires] = []
                for msMax in [60_000, 0] {
                    let waiting = HeldBytes(max: 100, perClientMax: 100)
                    let wires = SharedWires(link, on: loop, max: 4, GatewayLimits(), waiting)
                    all.append(wires)
                    for _ in 0..<2 { wires.call("hold", [UInt8](repeating: 0x20, count: 60), msMax: msMax, ended) }
                    inTurn = outcomes
                }
                close = { for wires in all { wires.close() } }
            }
        }
        #expect(outcomes == ["busy", "timeout"], "nothing is given up before its time")
        // What follows from one that is given up may be another call, and so on.
        #expect(inTurn == ["busy"])
        try await service.stop()
    }

    /// How many calls each connection got, the most first, when all are made in one turn and one connection stood.
    private func counts(ofCalls count: Int, carriesOutTogether: Bool) async throws -> [Int] {
        let service = try await SilentService()
        let link = try service.link(carriesOutTogether: carriesOutTogether)
        let loop = service.loop
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            loop.execute {
                let waiting = HeldBytes(max: 1 << 20, perClientMax: 1 << 20)
                var limits = GatewayLimits()
                // On a busy machine this turn may pause.
                limits.slowCallMs = 60_000
                let wires = SharedWires(link, on: loop, max: 4, limits, waiting)
                wires.call("first", Array("{}".utf8)) { outcome in
                    if case .failure(let error) = outcome { return continuation.resume(throwing: error) }
                    var (missing, failure) = (count, RPCError?.none)
                    // In one turn, and not within a call of a connection.
                    loop.assumeIsolated().execute {
                        for _ in 0..<count {
                            wires.call("next", Array("{}".utf8)) { outcome in
                                if case .failure(let error) = outcome { failure = error }
                                missing -= 1
                                guard missing == 0 else { return }
                                wires.close()
                                if let failure { continuation.resume(throwing: failure) } else { continuation.resume() }
                            }
                        }
                    }
                }
            }
        }
        let counts = try await service.counts()
        try await service.stop()
        return counts
    }
}

/// Responds to each call with an empty object, but to `hold`; counts the calls of the method `next` by connection.
private final class SilentService: Sendable {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    private let channel: any Channel
    private let calls: NIOLoopBoundBox<[Int]>

    init() async throws {
        let loop = loop
        let calls = try await loop.submit { NIOLoopBoundBox<[Int]>([], eventLoop: loop) }.get()
        self.calls = calls
        channel = try await ServerBootstrap(group: loop)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    calls.value.append(0)
                    let responder = Responder(calls, calls.value.count - 1)
                    try channel.pipeline.syncOperations.addHandler(responder)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func link(carriesOutTogether: Bool) throws -> ServiceLink {
        let port = try #require(channel.localAddress?.port)
        return ServiceLink(
            connector: try RPCWireConnector(RPCWireConfiguration(host: "127.0.0.1", port: port)), forwardKey: "key",
            reports: ServiceReports("messages", at: "127.0.0.1:\(port)", Logger(label: "test")),
            carriesOutTogether: carriesOutTogether)
    }

    /// The most first.
    func counts() async throws -> [Int] {
        let calls = calls
        return try await loop.submit { calls.value.sorted(by: >) }.get()
    }

    func stop() async throws { try await channel.close().get() }
}

private final class Responder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let calls: NIOLoopBoundBox<[Int]>
    private let index: Int
    private var received = ""

    init(_ calls: NIOLoopBoundBox<[Int]>, _ index: Int) { (self.calls, self.index) = (calls, index) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += String(buffer: unwrapInboundIn(data))
        while let end = received.firstIndex(of: "\n") {
            let line = String(received[..<end])
            received = String(received[received.index(after: end)...])
            guard let request = try? JSONParser.parse(line), let id = request["id"]?.integer else { continue }
            if request["method"] == "next" { calls.value[index] += 1 }
            guard request["method"] != "hold" else { continue }
            let response = ByteBuffer(string: "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"result\":{}}\n")
            context.writeAndFlush(wrapOutboundOut(response), promise: nil)
        }
    }
}

extension Result where Failure == RPCError {
    /// Nil: it has succeeded, or the error has none.
    fileprivate var reason: String? { if case .failure(let error) = self { error.reason } else { nil } }
}

import AsyncHTTPClient
import Foundation
import HatoFetch
import HatoModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import TestCertificates
import Testing

@testable import HatoPush

private struct LoopbackResolver: HostResolver {
    func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress] {
        [.v4(0x7F00_0001)]
    }
}

/// The connection goes to the checked address, but certificate and server name are those of the host.
@Suite(.timeLimit(.minutes(10)))
struct PinnedTLSTests {
    @Test func theCertificateMustBeTheHosts() async throws {
        let certificates = try TestCertificates(["server": [.dns("receiver.test")]])
        let server = try await TLSServer(certificates)
        var client = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(certificates.path("ca.pem"))
        client.tlsConfiguration = tls
        let channel = WebhookChannel(
            AddressGuard(.init(allowsPrivate: true), resolver: LoopbackResolver()), limits: .init(), version: "0.1.0",
            now: { 0 }, client: client)
        func deliver(_ host: String) async -> DeliveryOutcome {
            let content = DeliveryContent(notification: "n", device: "d", uid: "u", text: .init(title: "t"))
            let url = "https://\(host):\(server.port)/"
            return await channel.deliver(
                Delivery(
                    id: "n-0", address: .webhook(url: url, secrets: [WebhookSecret { 1 }]), content: content,
                    createdAt: 0))
        }
        #expect(await deliver("receiver.test") == .delivered(DeliveryResponse(status: 204)))
        guard case .failed(let answer, nil) = await deliver("other.test") else {
            Issue.record("a certificate for another host was accepted")
            return
        }
        #expect(answer.status == nil)
        await channel.shutdown()
        await server.stop()
    }

    @Test(arguments: [(TLSVersion.tlsv11, false), (.tlsv12, true)])
    func oldVersionsOfTLSAreNotSpoken(newest: TLSVersion, isDelivered: Bool) async throws {
        let certificates = try TestCertificates(["server": [.dns("receiver.test")]])
        let server = try await TLSServer(certificates, newest: newest)
        var client = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(certificates.path("ca.pem"))
        client.tlsConfiguration = tls
        let channel = WebhookChannel(
            AddressGuard(.init(allowsPrivate: true), resolver: LoopbackResolver()), limits: .init(), version: "0.1.0",
            now: { 0 }, client: client)
        let content = DeliveryContent(notification: "n", device: "d", uid: "u", text: .init(title: "t"))
        let url = "https://receiver.test:\(server.port)/"
        let address = DeviceAddress.webhook(url: url, secrets: [WebhookSecret { 1 }])
        let outcome = await channel.deliver(Delivery(id: "n-0", address: address, content: content, createdAt: 0))
        #expect((outcome == .delivered(DeliveryResponse(status: 204))) == isDelivered)
        await channel.shutdown()
        await server.stop()
    }
}

/// Answers 204 to everything, over TLS.
private final class TLSServer: Sendable {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let channel: any NIOCore.Channel
    var port: Int { channel.localAddress?.port ?? 0 }

    init(_ files: TestCertificates, newest: TLSVersion? = nil) async throws {
        let certificates = try NIOSSLCertificate.fromPEMFile(files.path("server.pem"))
        let key = try NIOSSLPrivateKey(file: files.path("server.key"), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv1
        configuration.maximumTLSVersion = newest
        let context = try NIOSSLContext(configuration: configuration)
        channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    try pipeline.configureHTTPServerPipeline()
                    try pipeline.addHandler(Answer())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func stop() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
    }

    private final class Answer: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let head = HTTPResponseHead(version: .http1_1, status: .noContent)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}

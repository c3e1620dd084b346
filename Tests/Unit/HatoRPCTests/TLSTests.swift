import HatoModel
import HatoRPC
import NIOCore
import NIOPosix
import NIOSSL
import TestCertificates
import Testing

/// TLS and mutual TLS, with certificates made for the test.
@Suite(.timeLimit(.minutes(10)))
struct TLSTests {
    private func configuration(
        _ port: Int, _ certificates: TestCertificates, client: String? = nil, host: String = "localhost"
    ) -> RPCClientConfiguration {
        var configuration = RPCClientConfiguration(host: host, port: port)
        configuration.tls = RPCClientTLS(
            authorityFile: certificates.path("ca.pem"), certificateFile: client.map { certificates.path("\($0).pem") },
            keyFile: client.map { certificates.path("\($0).key") })
        return configuration
    }

    private func server(_ certificates: TestCertificates, mutual: Bool = false) -> RPCServerTLS {
        RPCServerTLS(
            certificateFile: certificates.path("server.pem"), keyFile: certificates.path("server.key"),
            clientAuthorityFile: mutual ? certificates.path("ca.pem") : nil)
    }

    @Test func callsGoOverTLS() async throws {
        let certificates = try TestCertificates()
        let service = try await TestService { $0.tls = server(certificates) }
        for host in ["localhost", "127.0.0.1"] {
            let client = RPCClient(configuration(service.port, certificates, host: host))
            #expect(try await client.call(Check.Echo(value: "x")).value == "x")
            let long = JSONValue.string(String(repeating: "x", count: 60_000))
            #expect(try await client.call(Check.Echo(value: long)).value == long)
            await client.close()
        }
        await service.stop()
    }

    @Test func serverWithTheCertificateOfAnotherAuthorityIsNotCalled() async throws {
        let certificates = try TestCertificates()
        let others = try TestCertificates()
        let service = try await TestService { $0.tls = server(certificates) }
        let client = RPCClient(configuration(service.port, others))
        await #expect(throws: RPCError.self) { try await client.call(Check.Echo(value: 1)) }
        await service.stop()
    }

    @Test func serverUnderAnotherNameIsNotTalkedTo() async throws {
        let certificates = try TestCertificates()
        // NIOSSL also takes a certificate that bears the address it connected to: this one bears only a name.
        let service = try await TestService {
            $0.tls = RPCServerTLS(
                certificateFile: certificates.path("named.pem"), keyFile: certificates.path("named.key"))
        }
        let right = RPCClient(configuration(service.port, certificates))
        #expect(try await right.call(Check.Echo(value: "x")).value == "x")
        var wrong = configuration(service.port, certificates)
        wrong.tls?.serverName = "example.com"
        let client = RPCClient(wrong)
        await #expect(throws: RPCError.self) { try await client.call(Check.Echo(value: 1)) }
        await service.stop()
    }

    @Test func mutualTLSTakesOnlyClientsWithACertificateOfItsAuthority() async throws {
        let certificates = try TestCertificates()
        let others = try TestCertificates()
        let service = try await TestService { $0.tls = server(certificates, mutual: true) }
        let known = RPCClient(configuration(service.port, certificates, client: "client"))
        #expect(try await known.call(Check.Echo(value: "x")).value == "x")
        let bare = RPCClient(configuration(service.port, certificates))
        await #expect(throws: RPCError.self) { try await bare.call(Check.Echo(value: 1)) }
        var foreign = configuration(service.port, certificates)
        foreign.tls?.certificateFile = others.path("client.pem")
        foreign.tls?.keyFile = others.path("client.key")
        let unknown = RPCClient(foreign)
        await #expect(throws: RPCError.self) { try await unknown.call(Check.Echo(value: 1)) }
        await service.stop()
    }

    @Test func plainTextOnATLSPortGetsNoResponse() async throws {
        let certificates = try TestCertificates()
        let service = try await TestService { $0.tls = server(certificates) }
        let peer = try await service.peer()
        peer.sendLater(#"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"# + "\n")
        #expect(try await peer.line()?.hasPrefix("{") != true)
        await service.stop()
    }

    @Test func handshakeThatNeverEndsIsCutOff() async throws {
        let certificates = try TestCertificates()
        let service = try await TestService {
            $0.tls = server(certificates)
            $0.limits.handshakeSecondsMax = 1
        }
        let peer = try await service.peer()
        try await peer.expectClosed()
        await service.stop()
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n", "Host: x\r\n"])
    func httpIsClosedUnansweredAlsoInsideTLS(opening: String) async throws {
        let certificates = try TestCertificates()
        let service = try await TestService { $0.tls = server(certificates) }
        var settings = TLSConfiguration.makeClientConfiguration()
        settings.trustRoots = .file(certificates.path("ca.pem"))
        let context = try NIOSSLContext(configuration: settings)
        let peer = try await RawPeer(port: service.port) { channel in
            try channel.pipeline.syncOperations.addHandler(
                try NIOSSLClientHandler(context: context, serverHostname: "localhost"))
        }
        for byte in opening.utf8 { peer.sendLater(String(UnicodeScalar(byte))) }
        try await peer.expectClosed()
        await service.stop()
    }

    @Test(arguments: [(TLSVersion.tlsv12, true), (.tlsv11, false)])
    func listenerSpeaksNoOldVersionOfTLS(newest: TLSVersion, isSpoken: Bool) async throws {
        let certificates = try TestCertificates()
        let service = try await TestService { $0.tls = server(certificates) }
        var settings = TLSConfiguration.makeClientConfiguration()
        settings.trustRoots = .file(certificates.path("ca.pem"))
        (settings.minimumTLSVersion, settings.maximumTLSVersion) = (.tlsv1, newest)
        let context = try NIOSSLContext(configuration: settings)
        let peer = try await RawPeer(port: service.port) { channel in
            try channel.pipeline.syncOperations.addHandler(
                try NIOSSLClientHandler(context: context, serverHostname: "localhost"))
        }
        peer.sendLater(#"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"# + "\n")
        let answer = (try? await peer.line()) ?? nil
        #expect((answer?.contains("result") == true) == isSpoken)
        await service.stop()
    }

    @Test(arguments: [(TLSVersion.tlsv12, true), (.tlsv11, false)])
    func linkSpeaksNoOldVersionOfTLS(newest: TLSVersion, isSpoken: Bool) async throws {
        let certificates = try TestCertificates()
        var settings = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificates.path("server.pem")).map {
                .certificate($0)
            }, privateKey: .privateKey(try NIOSSLPrivateKey(file: certificates.path("server.key"), format: .pem)))
        (settings.minimumTLSVersion, settings.maximumTLSVersion) = (.tlsv1, newest)
        let context = try NIOSSLContext(configuration: settings)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(NIOSSLServerHandler(context: context), Echo())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = RPCClient(configuration(server.localAddress?.port ?? 0, certificates))
        let outcome = try? await client.call(Check.Echo(value: "x"))
        #expect((outcome != nil) == isSpoken)
        await client.close()
        try await server.close()
    }

    @Test func missingCertificateStopsTheStartNamingTheFile() async throws {
        do {
            _ = try await TestService {
                $0.tls = RPCServerTLS(certificateFile: "/no/such.pem", keyFile: "/no/such.key")
            }
            Issue.record("it started")
        } catch let error as TLSFileError {
            #expect(error.part == .certificate)
            #expect(error.description == "/no/such.pem cannot be read: no such file or directory")
        }
    }
}

/// Responds to every call as `check.echo` of "x".
private final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let line = String(buffer: unwrapInboundIn(data))
        guard let id = try? JSONParser.parse(line)["id"]?.number else { return }
        let answer = ByteBuffer(string: "{\"jsonrpc\":\"2.0\",\"id\":\(Int(id)),\"result\":{\"value\":\"x\"}}\n")
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
    }
}

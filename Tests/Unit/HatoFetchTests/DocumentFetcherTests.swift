import HatoRuntime
import Synchronization
import Testing

@testable import HatoFetch

/// Every name is at this address.
private struct OneAddressResolver: HostResolver {
    var address = "127.0.0.1"

    func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress] {
        [IPAddress(address)].compactMap { $0 }
    }
}

/// One small document from an address that may be called, or the reason why not.
@Suite(.timeLimit(.minutes(10)))
struct DocumentFetcherTests {
    private static let document = Array(#"{"keys":[]}"#.utf8)

    private func fetcher(
        allowsPrivate: Bool = true, at address: String = "127.0.0.1", timeout: Duration = .seconds(240)
    ) -> DocumentFetcher {
        var limits = DocumentFetcher.Limits()
        limits.timeout = timeout
        return DocumentFetcher(
            AddressGuard(.init(allowsPrivate: allowsPrivate), resolver: OneAddressResolver(address: address)),
            limits: limits, userAgent: "hato-auth/0.1.0")
    }

    /// What a server's response becomes.
    private func fetch(
        with fetcher: DocumentFetcher? = nil, _ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async throws -> Result<[UInt8], FetchError> {
        let fetcher = fetcher ?? self.fetcher()
        let server = try await HTTPListener(host: "127.0.0.1", port: 0, answer: answer)
        let outcome: Result<[UInt8], FetchError>
        do { outcome = .success(try await fetcher.document(at: "http://issuer.example:\(server.port)/keys?x=1")) } catch
        {
            outcome = .failure(error)
        }
        await fetcher.shutdown()
        await server.stop(grace: .zero)
        return outcome
    }

    @Test func aDocumentComesWhole() async throws {
        let requests = Mutex<[String]>([])
        let outcome = try await fetch { request in
            requests.withLock {
                $0.append("\(request.method) \(request.target) \(request.header("user-agent") ?? "")")
            }
            return HTTPResponse(status: 200, body: Self.document)
        }
        #expect(outcome == .success(Self.document))
        #expect(requests.withLock { $0 } == ["GET /keys?x=1 hato-auth/0.1.0"])
    }

    @Test func aDocumentHasAtMost64KiB() async throws {
        let most = [UInt8](repeating: 0x20, count: 64 << 10)
        #expect(try await fetch { _ in HTTPResponse(status: 200, body: most) } == .success(most))
        for count in [(64 << 10) + 1, 10_000_000] {
            let body = [UInt8](repeating: 0x20, count: count)
            #expect(
                try await fetch { _ in HTTPResponse(status: 200, body: body) } == .failure(.tooLong(64 << 10)),
                "\(count) bytes")
        }
    }

    @Test func redirectsAreNotFollowed() async throws {
        let count = Mutex(0)
        for status in [301, 302, 303, 307, 308] {
            let outcome = try await fetch { _ in
                count.withLock { $0 += 1 }
                return HTTPResponse(status: status, headers: [("location", "/elsewhere")])
            }
            #expect(outcome == .failure(.redirect))
        }
        #expect(count.withLock { $0 } == 5)
    }

    @Test(arguments: [204, 400, 404, 500, 503])
    func otherStatusesAreNoDocument(status: Int) async throws {
        #expect(try await fetch { _ in HTTPResponse(status: status) } == .failure(.status(status)))
    }

    @Test func aServerThatDoesNotRespondIsLeft() async throws {
        let (end, ending) = AsyncStream<Void>.makeStream()
        let outcome = try await fetch(with: fetcher(timeout: .seconds(1))) { _ in
            for await _ in end {}
            return HTTPResponse(status: 200)
        }
        ending.finish()
        #expect(outcome == .failure(.late(seconds: 1)))
    }

    @Test func noServerIsNoDocument() async throws {
        let server = try await HTTPListener(host: "127.0.0.1", port: 0) { _ in HTTPResponse(status: 200) }
        let port = server.port
        await server.stop()
        let fetcher = fetcher()
        let error = await #expect(throws: FetchError.self) {
            try await fetcher.document(at: "http://127.0.0.1:\(port)/")
        }
        await fetcher.shutdown()
        guard case .noResponse? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func onlyThePublicInternetIsCalled() async throws {
        let outside = fetcher(allowsPrivate: false, at: "93.184.215.14")
        let inside = fetcher(allowsPrivate: false, at: "10.0.0.1")
        await #expect(throws: FetchError.refused(.plainHTTP)) {
            try await outside.document(at: "http://issuer.example/")
        }
        await #expect(throws: FetchError.refused(.privateAddress(host: "issuer.example"))) {
            try await inside.document(at: "https://issuer.example/")
        }
        await #expect(throws: FetchError.refused(.privateAddress(host: "169.254.169.254"))) {
            try await outside.document(at: "https://169.254.169.254/latest/meta-data")
        }
        await #expect(throws: FetchError.refused(.portNotAllowed(6379, allowed: [443, 8443]))) {
            try await outside.document(at: "https://issuer.example:6379/")
        }
    }

    /// A document over plain http could be another's on any longer way.
    @Test func plainHTTPGoesToThisMachineOnly() async throws {
        for address in ["10.0.0.1", "192.168.1.1", "93.184.215.14", "fd00::1"] {
            await #expect(throws: FetchError.refused(.plainHTTP), "\(address)") {
                try await fetcher(at: address).document(at: "http://issuer.example/")
            }
        }
    }

    @Test func loopbackIsRecognised() throws {
        for text in ["127.0.0.1", "127.255.0.3", "::1", "::ffff:127.0.0.1"] {
            #expect(try #require(IPAddress(text)).isLoopback, "\(text)")
        }
        for text in ["128.0.0.1", "10.0.0.1", "::", "::2", "1::1", "::ffff:10.0.0.1", "fe80::1"] {
            #expect(try !#require(IPAddress(text)).isLoopback, "\(text)")
        }
    }
}

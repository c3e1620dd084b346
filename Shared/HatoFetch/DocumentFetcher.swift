public import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// Why there is no document.
public enum FetchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The address may not be called, or its name has no address.
    case refused(AddressRefusal)
    /// The response is a redirect, which is never followed.
    case redirect
    /// The HTTP status is another one than 200.
    case status(Int)
    /// The document has more bytes than this.
    case tooLong(Int)
    /// It did not come whole within these seconds.
    case late(seconds: Int)
    /// There is no response, or it broke off.
    case noResponse(String)

    /// What happened, as a sentence without its full stop.
    public var description: String {
        switch self {
        case .refused(let refusal): refusal.message
        case .redirect: "The response is a redirect, and redirects are not followed"
        case .status(let code): "The response has the HTTP status \(code) instead of 200"
        case .tooLong(let bytes): "The document has more than \(bytes) bytes"
        case .late(let seconds): "The document did not come within \(seconds) seconds"
        case .noResponse(let why): "There is no response: \(why)"
        }
    }
}

/// Gets small documents over https.
///
/// The address is checked before each call, and the connection goes to the address that was checked. Redirects are not
/// followed. Plain http goes to this machine only, where private addresses are allowed.
public struct DocumentFetcher: Sendable {
    /// Bounds of one document.
    public struct Limits: Sendable, Hashable {
        /// Bytes of the document.
        public var bytesMax = 64 << 10
        /// From the look-up of the name to the last byte.
        public var timeout: Duration = .seconds(10)
        /// Servers whose connections are kept.
        public var clientsMax = 16

        public init() {}
    }

    private let addressGuard: AddressGuard
    private let limits: Limits
    private let clients: PinnedClients
    private let userAgent: String

    /// A fetcher that calls what `addressGuard` admits.
    ///
    /// - Parameter userAgent: what the requests say about their sender.
    public init(_ addressGuard: AddressGuard, limits: Limits = Limits(), userAgent: String) {
        self.init(addressGuard, limits: limits, userAgent: userAgent, client: HTTPClient.Configuration())
    }

    /// `client` carries what tests change: which certificates are trusted.
    init(_ addressGuard: AddressGuard, limits: Limits, userAgent: String, client: HTTPClient.Configuration) {
        self.addressGuard = addressGuard
        self.limits = limits
        self.userAgent = userAgent
        var configuration = client
        configuration.timeout.connect = .init(limits.timeout)
        clients = PinnedClients(configuration, clientsMax: limits.clientsMax)
    }

    /// The bytes of the document at an address. Throws `FetchError`.
    public func document(at url: String) async throws(FetchError) -> [UInt8] {
        let outcome = await withTaskGroup { group in
            group.addTask { await get(url) }
            group.addTask { () -> Result<[UInt8], FetchError> in
                try? await Task.sleep(for: limits.timeout)
                return .failure(late)
            }
            // The one that ends first ends the other one.
            let first = await group.next()
            group.cancelAll()
            return first
        }
        return try (outcome ?? .failure(.noResponse("it was cancelled"))).get()
    }

    /// Closes the connections; one that is in use is closed after its document.
    public func shutdown() async { await clients.shutdown() }

    private var late: FetchError { .late(seconds: Int(limits.timeout.components.seconds)) }

    private func get(_ url: String) async -> Result<[UInt8], FetchError> {
        let admitted: AddressGuard.Admitted
        // Turns of look-ups are by host: one whose name servers do not respond delays no other.
        let caller = LookUpCaller(uid: (try? StrictURL(url))?.host ?? "", isDelivery: false)
        do { admitted = try await addressGuard.admit(url, for: caller) } catch {
            return .failure(.refused(error))
        }
        guard admitted.url.scheme == "https" || admitted.address.isLoopback else {
            return .failure(.refused(.plainHTTP))
        }
        var request = HTTPClientRequest(url: admitted.url.text)
        request.headers = ["accept": "application/json", "user-agent": userAgent]
        let outcome = await clients.withClient(for: admitted) { [request] client in await call(client, request) }
        return outcome ?? .failure(.noResponse("this service is stopping"))
    }

    private func call(_ client: HTTPClient, _ request: HTTPClientRequest) async -> Result<[UInt8], FetchError> {
        do {
            let response = try await client.execute(request, timeout: .init(limits.timeout))
            let status = Int(response.status.code)
            guard status == 200 else { return .failure((300..<400).contains(status) ? .redirect : .status(status)) }
            var bytes: [UInt8] = []
            for try await part in response.body {
                guard part.readableBytes <= limits.bytesMax - bytes.count else {
                    return .failure(.tooLong(limits.bytesMax))
                }
                bytes.append(contentsOf: part.readableBytesView)
            }
            return .success(bytes)
        } catch let error as HTTPClientError {
            // The client has the same limit: whichever clock is first.
            if [.deadlineExceeded, .connectTimeout].contains(error) { return .failure(late) }
            return .failure(.noResponse(error.shortDescription))
        } catch {
            return .failure(.noResponse(String(String(describing: error).prefix(200))))
        }
    }
}

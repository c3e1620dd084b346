import AsyncHTTPClient
import HatoModel
import NIOSSL

/// The connection to Apple's push service of one key, environment and topic: APNs ties a connection to all three.
///
/// It has one request at a time until a response proves that APNs takes the provider token, and from then on as many as
/// APNs allows. After two requests in a row without a response in time, and when APNs shuts the connection down, there
/// is a new connection, which begins so again.
actor APNsLink {
    struct Key: Hashable {
        var signer: APNsProviderTokens.Signer
        var url: String
        var trustRoots: [NIOSSLCertificate]?
        var topic: String

        init(_ credentials: APNsCredentials, _ environment: Notifier.APNsEnvironment, topic: String) {
            signer = APNsProviderTokens.Signer(credentials, environment)
            url = credentials.url(of: environment)
            trustRoots = credentials.trustRoots
            self.topic = topic
        }
    }

    /// The right to make a request.
    enum Turn {
        /// No other has one.
        case alone
        case free
    }

    /// What a request has shown about the provider token.
    enum Proof {
        case taken, refused, nothing
    }

    nonisolated let url: String
    private let client: ReplaceableClient
    private var generation = 0
    private var isProven = false
    private var isProving = false
    private var waiters: [(id: UInt64, continuation: CheckedContinuation<Turn?, Never>)] = []
    private var waiterCount: UInt64 = 0

    init(_ key: Key, _ configuration: HTTPClient.Configuration) {
        url = key.url
        var configuration = configuration
        if let trustRoots = key.trustRoots {
            var tls = configuration.tlsConfiguration ?? .makeClientConfiguration()
            tls.trustRoots = .certificates(trustRoots)
            configuration.tlsConfiguration = tls
        }
        client = ReplaceableClient(configuration)
    }

    /// Waits for a turn; `ended` follows. Nil when there is none in time, or when the task is cancelled.
    func turn(within limit: Duration) async -> Turn? {
        if isProven { return .free }
        guard isProving else {
            isProving = true
            return .alone
        }
        let id = waiterCount
        waiterCount += 1
        let timer = Task {
            try? await Task.sleep(for: limit)
            expired(id)
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { continuation.resume(returning: nil) } else { waiters.append((id, continuation)) }
            }
        } onCancel: {
            Task { await expired(id) }
        }
    }

    /// Makes a request in a turn. Throws its failure.
    func response(
        _ call: BoundedCall, _ request: HTTPClientRequest, isLast: @Sendable (BoundedCall.Response) -> Bool
    ) async throws(BoundedCall.Failure) -> BoundedCall.Response {
        let result: Result<BoundedCall.Response, BoundedCall.Failure>
        do { result = .success(try await client.response(call, request, isLast: isLast)) } catch {
            result = .failure(error)
        }
        let present = await client.generation
        if present != generation { (generation, isProven) = (present, false) }
        return try result.get()
    }

    /// A turn has ended.
    func ended(_ turn: Turn, _ proof: Proof) {
        switch proof {
        case .taken: isProven = true
        case .refused: isProven = false
        case .nothing: break
        }
        if case .alone = turn { isProving = false }
        if isProven {
            for waiter in waiters { waiter.continuation.resume(returning: .free) }
            waiters = []
        } else if !isProving, !waiters.isEmpty {
            isProving = true
            waiters.removeFirst().continuation.resume(returning: .alone)
        }
    }

    /// How many clients there have been.
    var clientCount: Int { get async { await client.generation + 1 } }

    /// Closes the connection, after its requests.
    func shutdown() async { await client.shutdown() }

    private func expired(_ id: UInt64) {
        guard let index = waiters.firstIndex(where: { $0.id == id }) else { return }
        waiters.remove(at: index).continuation.resume(returning: nil)
    }
}

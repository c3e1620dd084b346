import AsyncHTTPClient
import HatoModel
import NIOSSL
import Synchronization

/// The connection to Apple's push service of one key, environment and topic: APNs ties a connection to all three.
///
/// It has one request at a time until a response proves that APNs takes the provider token, and from then on as many as
/// APNs allows. After two requests in a row without a response in time, and when APNs shuts the connection down, there
/// is a new connection, which begins so again.
///
/// A lock and no actor: each request has its turn at once when APNs takes the token.
final class APNsLink: Sendable {
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

    private struct Waiter {
        var id: UInt64
        var continuation: CheckedContinuation<Turn?, Never>
        /// Ends its wait.
        var timer: Task<Void, Never>

        func resume(_ turn: Turn?) {
            timer.cancel()
            continuation.resume(returning: turn)
        }
    }

    private struct State {
        var generation = 0
        var isProven = false
        var isProving = false
        var waiters: [Waiter] = []
        var waiterCount: UInt64 = 0

        /// A turn that is there now.
        mutating func turn() -> Turn? {
            if isProven { return .free }
            if isProving { return nil }
            isProving = true
            return .alone
        }
    }

    let url: String
    private let client: ReplaceableClient
    private let state = Mutex(State())

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
        if let turn = state.withLock({ $0.turn() }) { return turn }
        let id = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // It may have come since.
                let (turn, waits) = state.withLock { state -> (Turn?, Bool) in
                    guard !Task.isCancelled else { return (nil, false) }
                    if let turn = state.turn() { return (turn, false) }
                    let timer = Task {
                        try? await Task.sleep(for: limit)
                        expired(id)
                    }
                    state.waiters.append(Waiter(id: id, continuation: continuation, timer: timer))
                    return (nil, true)
                }
                if !waits { continuation.resume(returning: turn) }
            }
        } onCancel: {
            expired(id)
        }
    }

    /// Makes a request in a turn. Throws its failure.
    func response(
        _ call: BoundedCall, _ post: BoundedCall.Post, isLast: @Sendable (BoundedCall.Response) -> Bool
    ) async throws(BoundedCall.Failure) -> BoundedCall.Response {
        let result: Result<BoundedCall.Response, BoundedCall.Failure>
        do { result = .success(try await client.response(call, post, isLast: isLast)) } catch {
            result = .failure(error)
        }
        let present = client.generation
        state.withLock { state in
            if present != state.generation { (state.generation, state.isProven) = (present, false) }
        }
        return try result.get()
    }

    /// A turn has ended.
    func ended(_ turn: Turn, _ proof: Proof) {
        let (next, waiters) = state.withLock { state -> (Turn, [Waiter]) in
            switch proof {
            case .taken: state.isProven = true
            case .refused: state.isProven = false
            case .nothing: break
            }
            if case .alone = turn { state.isProving = false }
            if state.isProven {
                defer { state.waiters = [] }
                return (.free, state.waiters)
            }
            guard !state.isProving, !state.waiters.isEmpty else { return (.free, []) }
            state.isProving = true
            return (.alone, [state.waiters.removeFirst()])
        }
        for waiter in waiters { waiter.resume(next) }
    }

    /// How many clients there have been.
    var clientCount: Int { client.generation + 1 }

    /// Closes the connection, after its requests.
    func shutdown() async { await client.shutdown() }

    private func expired(_ id: UInt64) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.resume(nil)
    }
}

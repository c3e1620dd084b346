import AsyncHTTPClient
import NIOSSL
import Synchronization

/// An HTTP client that is replaced when it may have a connection that has gone silent: it neither pings nor drops one,
/// so every request over it would wait in vain. It is also replaced when a response says that its connection ends.
///
/// A lock and no actor: a request would change its thread twice.
final class ReplaceableClient: Sendable {
    /// After so many requests in a row that got no response in time.
    static let lateMax = 2

    private struct Entry {
        var client: HTTPClient
        var users = 0
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var current = 0
        var late = 0
        var isShutDown = false

        /// Takes the client out when it is not used any more.
        mutating func takeUnused(_ number: Int) -> HTTPClient? {
            guard number != current || isShutDown, let entry = entries[number], entry.users == 0 else { return nil }
            entries[number] = nil
            return entry.client
        }
    }

    private let configuration: HTTPClient.Configuration
    private let state = Mutex(State())

    /// Clients with this configuration, which follow no redirect, try no connection again, leave compressed responses
    /// as they are and speak TLS of version 1.2 or newer.
    init(_ configuration: HTTPClient.Configuration) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.decompression = .disabled
        // There is none, and the attributes of its spans cost a parsed URL for each request.
        configuration.tracing.tracer = nil
        var tls = configuration.tlsConfiguration ?? .makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        configuration.tlsConfiguration = tls
        self.configuration = configuration
    }

    /// How many clients there have been.
    var generation: Int { state.withLock { $0.current } }

    /// Makes a call with the present client. Throws its failure, also after `shutdown`.
    ///
    /// - Parameter isLast: whether a response ends its connection.
    func response(
        _ call: BoundedCall, _ post: BoundedCall.Post,
        isLast: @Sendable (BoundedCall.Response) -> Bool = { _ in false }
    ) async throws(BoundedCall.Failure) -> BoundedCall.Response {
        guard let (number, client) = borrow() else {
            throw BoundedCall.Failure(reason: "the notifier is stopping", isLate: false)
        }
        let result: Result<BoundedCall.Response, BoundedCall.Failure>
        do { result = .success(try await call.response(client, post)) } catch { result = .failure(error) }
        if let unused = ended(number, result, isLast) { try? await unused.shutdown() }
        return try result.get()
    }

    /// Closes the connections; one that is in use is closed after its use.
    func shutdown() async {
        let idle = state.withLock { state in
            state.isShutDown = true
            return Array(state.entries.keys).compactMap { state.takeUnused($0) }
        }
        for client in idle { try? await client.shutdown() }
    }

    private func borrow() -> (number: Int, client: HTTPClient)? {
        state.withLock { state in
            guard !state.isShutDown else { return nil }
            var entry =
                state.entries[state.current]
                ?? Entry(client: HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration))
            entry.users += 1
            state.entries[state.current] = entry
            return (state.current, entry.client)
        }
    }

    /// Returns the client when it is not used any more.
    private func ended(
        _ number: Int, _ result: Result<BoundedCall.Response, BoundedCall.Failure>,
        _ isLast: (BoundedCall.Response) -> Bool
    ) -> HTTPClient? {
        let isLast = if case .success(let response) = result { isLast(response) } else { false }
        return state.withLock { state in
            if number == state.current {
                switch result {
                case .success:
                    state.late = 0
                    if isLast { state.current += 1 }
                case .failure(let failure) where failure.isLate:
                    state.late += 1
                    if state.late >= Self.lateMax { (state.late, state.current) = (0, state.current + 1) }
                case .failure: break
                }
            }
            state.entries[number]?.users -= 1
            return state.takeUnused(number)
        }
    }
}

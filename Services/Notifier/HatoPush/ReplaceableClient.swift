import AsyncHTTPClient
import NIOSSL

/// An HTTP client that is replaced when it may have a connection that has gone silent: it neither pings nor drops one,
/// so every request over it would wait in vain. It is also replaced when a response says that its connection ends.
actor ReplaceableClient {
    /// After so many requests in a row that got no response in time.
    static let lateMax = 2

    private struct Entry {
        var client: HTTPClient
        var users = 0
    }

    private let configuration: HTTPClient.Configuration
    private var entries: [Int: Entry] = [:]
    private var current = 0
    private var late = 0
    private var isShutDown = false

    /// Clients with this configuration, which follow no redirect, try no connection again, leave compressed responses
    /// as they are and speak TLS of version 1.2 or newer.
    init(_ configuration: HTTPClient.Configuration) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.decompression = .disabled
        var tls = configuration.tlsConfiguration ?? .makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        configuration.tlsConfiguration = tls
        self.configuration = configuration
    }

    /// How many clients there have been.
    var generation: Int { current }

    /// Makes a call with the present client. Throws its failure, also after `shutdown`.
    ///
    /// - Parameter isLast: whether a response ends its connection.
    func response(
        _ call: BoundedCall, _ request: HTTPClientRequest,
        isLast: @Sendable (BoundedCall.Response) -> Bool = { _ in false }
    ) async throws(BoundedCall.Failure) -> BoundedCall.Response {
        guard !isShutDown else { throw BoundedCall.Failure(reason: "the notifier is stopping", isLate: false) }
        let number = current
        let client = borrow(number)
        let result: Result<BoundedCall.Response, BoundedCall.Failure>
        do { result = .success(try await call.response(client, request)) } catch { result = .failure(error) }
        if number == current { ended(result, isLast) }
        await giveBack(number)
        return try result.get()
    }

    /// Closes the connections; one that is in use is closed after its use.
    func shutdown() async {
        isShutDown = true
        let idle = entries.filter { $0.value.users == 0 }
        for number in idle.keys { entries[number] = nil }
        for entry in idle.values { try? await entry.client.shutdown() }
    }

    private func borrow(_ number: Int) -> HTTPClient {
        var entry =
            entries[number]
            ?? Entry(client: HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration))
        entry.users += 1
        entries[number] = entry
        return entry.client
    }

    private func ended(
        _ result: Result<BoundedCall.Response, BoundedCall.Failure>, _ isLast: (BoundedCall.Response) -> Bool
    ) {
        switch result {
        case .success(let response):
            late = 0
            if isLast(response) { current += 1 }
        case .failure(let failure) where failure.isLate:
            late += 1
            guard late >= Self.lateMax else { return }
            late = 0
            current += 1
        case .failure: break
        }
    }

    private func giveBack(_ number: Int) async {
        entries[number]?.users -= 1
        guard number != current || isShutDown, let entry = entries[number], entry.users == 0 else { return }
        entries[number] = nil
        try? await entry.client.shutdown()
    }
}

import HatoRPC
import Synchronization

/// Keeps so many requests of each client in flight: the next one is sent when a response arrives.
///
/// It uses the public client, as applications do. That client makes and reads JSON, watches time limits, and needs
/// several times the processor time of a `RawLoad`.
struct ClientLoad: Sendable {
    var clients: [RPCClient]
    /// Requests in flight of each client.
    var depth: Int
    var method: String
    /// Sent in turn.
    var params: [EncodedJSON]

    func windows(_ settings: BenchSettings) async throws -> Window {
        _ = try await window(seconds: 0.5)
        var windows: [Window] = []
        for _ in 0..<settings.windows { windows.append(try await window(seconds: settings.seconds)) }
        return Window(mediansOf: windows)
    }

    func close() async {
        for client in clients { await client.close() }
    }

    private func window(seconds: Double) async throws -> Window {
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        let lanes = clients.enumerated().map { index, client in
            Lane(client: client, method: method, params: params, from: index * 61, end: end)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in lanes { group.addTask { try await lane.run(depth: depth) } }
            try await group.waitForAll()
        }
        return Window(seconds: Double(Clock.now() - start) / 1e9, latencies: lanes.flatMap(\.latencies))
    }
}

/// One client of a load.
///
/// `@unchecked Sendable`: after `run` has sent its first requests, everything happens in completions, which all run on
/// the client's one event loop; `latencies` is read after the last one.
private final class Lane: @unchecked Sendable {
    private let client: RPCClient
    private let method: String
    private let params: [EncodedJSON]
    private let end: UInt64
    private let next: Atomic<Int>
    private let inFlight = Atomic(0)
    private let failure = Mutex<BenchError?>(nil)
    private var done: CheckedContinuation<Void, Never>?
    private(set) var latencies: [UInt32] = []

    init(client: RPCClient, method: String, params: [EncodedJSON], from: Int, end: UInt64) {
        self.client = client
        self.method = method
        self.params = params
        self.end = end
        next = Atomic(from)
    }

    func run(depth: Int) async throws {
        await withCheckedContinuation { continuation in
            done = continuation
            inFlight.store(depth, ordering: .sequentiallyConsistent)
            for _ in 0..<depth { send() }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    private func send() {
        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
        let start = Clock.now()
        client.send(method: method, params: params[index % params.count]) { [self] result in
            let now = Clock.now()
            latencies.append(UInt32(clamping: (now - start) / 1_000))
            if case .failure(let error) = result { failure.withLock { $0 = BenchError("\(method): \(error)") } }
            if now < end, case .success = result {
                send()
            } else if inFlight.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue == 0 {
                done?.resume()
            }
        }
    }
}

import HatoModel
import HatoRuntime
import HatoTesting
import Synchronization

/// A provider that fails one call in ten: before or after it has taken the push, with or without a response.
final class FailingProvider: Sendable {
    private struct State {
        var random: SeededRandom
        var calls = 0
        var failures: [String: Int] = [:]
        /// The calls that get no response; nil: they get one at once, since the test is over.
        var silent: [AsyncStream<Void>.Continuation]? = []
    }

    private enum Failure {
        case error(Int, retryAfter: Int?)
        case silence
    }

    private let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(random: SeededRandom(seed: seed))) }

    /// How many calls came, and how many of them failed in which way.
    var text: String {
        state.withLock { state in
            let failures = state.failures.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            return "\(state.calls) calls, \(failures.joined(separator: ", "))"
        }
    }

    /// A call; `take` gives its push to the phone. Returns the response of a call that failed.
    func call(_ take: () -> Void) async -> HTTPResponse? {
        guard let (failure, isTaken) = next() else {
            take()
            return nil
        }
        if isTaken { take() }
        switch failure {
        case .error(let status, let seconds):
            let headers = seconds.map { [(name: "retry-after", value: "\($0)")] } ?? []
            return HTTPResponse(status: status, headers: headers)
        case .silence:
            let (end, continuation) = AsyncStream.makeStream(of: Void.self)
            let isOver = state.withLock { state in
                state.silent?.append(continuation)
                return state.silent == nil
            }
            if !isOver { for await _ in end {} }
            return HTTPResponse(status: 503)
        }
    }

    private func next() -> (Failure, isTaken: Bool)? {
        state.withLock { state in
            state.calls += 1
            guard state.calls % 10 == 0 else { return nil }
            let isTaken = Bool.random(using: &state.random)
            let failure: Failure
            // Rare, since a call is given 15 seconds.
            if state.calls / 10 % 100 == 7 {
                failure = .silence
            } else {
                failure =
                    switch Int.random(in: 0..<10, using: &state.random) {
                    case 0..<5: .error(500, retryAfter: nil)
                    case 5, 6: .error(503, retryAfter: nil)
                    case 7, 8: .error(429, retryAfter: 0)
                    default: .error(429, retryAfter: 1)
                    }
            }
            let name =
                switch failure {
                case .error(let status, let seconds): "\(status)" + (seconds.map { " after \($0) s" } ?? "")
                case .silence: "no response"
                }
            state.failures[name + (isTaken ? " (taken)" : ""), default: 0] += 1
            return (failure, isTaken)
        }
    }

    /// Ends the calls that have no response.
    func stop() {
        let silent = state.withLock { state in
            defer { state.silent = nil }
            return state.silent ?? []
        }
        for call in silent { call.finish() }
    }
}

import HatoModel
import Synchronization
import Testing

/// What clients of a gateway sent, had responses to and saw.
final class SocketHistory: Sendable {
    /// The numbers that one client writes to one place, in rising order.
    private struct Place {
        var sent = 0
        /// The newest one with a response.
        var acknowledged = 0
    }

    /// A number that clients raise by transactions.
    private struct Counter {
        /// What transactions with a response raised it to.
        var raised: Set<Int> = []
        /// What transactions without a response may have raised it to.
        var lost: Set<Int> = []
        var lostCount = 0
    }

    private struct State {
        var places: [String: Place] = [:]
        var counters: [String: Counter] = [:]
        /// Whether the request for an onDisconnect write had a response, by its path.
        var registered: [String: Bool] = [:]
        var views: [Int: [String: JSONValue]] = [:]
        /// How often each client was connected and had responses to all that restores its state.
        var comebacks: [Int]
        /// Clients that wait for no response.
        var quiet: Set<Int> = []
        var acknowledgements = 0
        var failures: [String] = []
        var isOver = false
    }

    private let state: Mutex<State>

    init(clients: Int) { state = Mutex(State(comebacks: Array(repeating: 0, count: clients))) }

    // MARK: Clients

    /// Whether clients send no further writes.
    var isOver: Bool { state.withLock { $0.isOver } }

    func isDisconnected(_ client: Int) { state.withLock { _ = $0.quiet.remove(client) } }

    func isBack(_ client: Int) { state.withLock { $0.comebacks[client] += 1 } }

    func report(_ client: Int, _ views: [String: JSONValue], isQuiet: Bool) {
        state.withLock { state in
            state.views[client] = views
            if isQuiet { state.quiet.insert(client) } else { state.quiet.remove(client) }
        }
    }

    func fail(_ failure: String) { state.withLock { $0.failures.append(failure) } }

    func sends(_ place: String, _ number: Int) { state.withLock { $0.places[place, default: Place()].sent = number } }

    func acknowledge(_ place: String, _ number: Int) {
        state.withLock { state in
            state.places[place, default: Place()].acknowledged = number
            state.acknowledgements += 1
        }
    }

    func raised(_ counter: String, to number: Int) {
        state.withLock { state in
            let isNew = state.counters[counter, default: Counter()].raised.insert(number).inserted
            if !isNew { state.failures.append("two transactions raised \(counter) to \(number)") }
            state.acknowledgements += 1
        }
    }

    func lost(_ counter: String, to number: Int) {
        state.withLock { state in
            state.counters[counter, default: Counter()].lost.insert(number)
            state.counters[counter]?.lostCount += 1
        }
    }

    func registers(_ path: String) { state.withLock { $0.registered[path] = false } }

    func isRegistered(_ path: String) { state.withLock { $0.registered[path] = true } }

    /// The largest number that can be at a path now.
    func sent(_ path: String) -> Int { state.withLock { $0.places[path]?.sent ?? .max } }

    /// The largest number with a response, of each of these places and counters.
    func acknowledged(_ paths: [String]) -> [String: Int] {
        state.withLock { state in
            let numbers = paths.map { path in
                (path, state.counters[path]?.raised.max() ?? state.places[path]?.acknowledged ?? 0)
            }
            return Dictionary(uniqueKeysWithValues: numbers)
        }
    }

    // MARK: The test

    /// How far the clients are.
    struct Progress {
        /// How often each client came back.
        var comebacks: [Int]
        /// Of writes and transactions.
        var acknowledgements: Int

        /// The clients that have not come back since.
        func missing(since earlier: Progress) -> [Int] {
            comebacks.indices.filter { comebacks[$0] <= earlier.comebacks[$0] }
        }
    }

    var progress: Progress {
        state.withLock { Progress(comebacks: $0.comebacks, acknowledgements: $0.acknowledgements) }
    }

    var failures: [String] { state.withLock { $0.failures } }

    /// How many clients wait for no response.
    var quietCount: Int { state.withLock { $0.quiet.count } }

    func end() { state.withLock { $0.isOver = true } }

    /// What was compared.
    var summary: String {
        let state = state.withLock { $0 }
        let writes = state.places.values.reduce(0) { $0 + $1.acknowledged }
        let raised = state.counters.values.reduce(0) { $0 + $1.raised.count }
        let lost = state.counters.values.reduce(0) { $0 + $1.lostCount }
        let unacknowledged = state.registered.values.count { !$0 }
        return """
            \(writes) writes and \(raised) transactions with a response, \(lost) transactions without; \
            \(state.registered.count) onDisconnect writes, \(unacknowledged) of them without a response
            """
    }

    /// The first client that has another value than the tree at a path that it listens to.
    func difference(from tree: JSONValue) -> String? {
        for (client, views) in state.withLock({ $0.views }) {
            for (path, view) in views where view != Self.value(at: path, of: tree) {
                return "client \(client) has \(view) at \(path)"
            }
        }
        return nil
    }

    /// Every write is there once all have a response, and each step of a counter is that of a transaction.
    func checkWrites(in tree: JSONValue) {
        let (places, counters) = state.withLock { ($0.places, $0.counters) }
        for (path, place) in places {
            #expect(place.acknowledged == place.sent, "\(path) waits for a response")
            let number = JSONValue.number(Double(place.acknowledged))
            #expect(Self.value(at: path, of: tree) == ["a": number, "b": number], "a write to \(path) is lost")
        }
        for (path, counter) in counters {
            let value = Int(Self.value(at: path, of: tree).integer ?? 0)
            #expect(counter.raised.allSatisfy { $0 <= value }, "a transaction on \(path) is lost")
            let steps = Set(0...value).subtracting(counter.raised).subtracting(counter.lost)
            #expect(steps == [0], "\(path) is \(value); no transaction took these steps")
        }
    }

    /// Whether all onDisconnect writes with a response are made.
    func areDisconnectsMade(in tree: JSONValue) -> Bool {
        state.withLock { $0.registered }.allSatisfy { !$0.value || !Self.value(at: $0.key, of: tree).isNull }
    }

    /// Every onDisconnect write with a response is made once, and each other one at most once.
    func checkDisconnects(in tree: JSONValue) {
        let registered = state.withLock { $0.registered }
        for (path, hasResponse) in registered {
            let count = Self.value(at: path, of: tree)
            #expect(count == 1 || count.isNull && !hasResponse, "\(path) is \(count)")
        }
    }

    private static func value(at path: String, of tree: JSONValue) -> JSONValue {
        path.split(separator: "/").reduce(tree) { $0[String($1)] ?? .null }
    }
}

import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The orders for failpoints of this process: set once, before a store is opened.
package enum Failpoints {
    /// The environment variable that holds the orders.
    package static let variable = "HATO_FAILPOINTS"

    private static let armed = Atomic<Bool>(false)
    private static let orders = Mutex<[Failpoint: FailpointOrder]>([:])

    static var isArmed: Bool { armed.load(ordering: .relaxed) }

    /// Takes the orders of the environment; returns what is wrong with them, which must stop the start. Accepted orders
    /// are passed to `warn`, so that the log explains why the service fails.
    package static func arm(environment: [String: String], warn: (_ orders: String) -> Void) -> String? {
        guard let text = environment[variable], !text.isEmpty else { return nil }
        do throws(FailpointProblem) {
            try arm(FailpointOrder.orders(in: text))
            warn("\(variable) is set: this process will fail as it orders: \(text)")
            return nil
        } catch {
            return "\(variable): \(error.description)"
        }
    }

    static func arm(_ found: [Failpoint: FailpointOrder]) {
        orders.withLock { $0 = found }
        armed.store(!found.isEmpty, ordering: .sequentiallyConsistent)
    }

    static func passed(_ failpoint: Failpoint) {
        if order(at: failpoint) == .kill { dieNow() }
    }

    static func passedOrFailed(_ failpoint: Failpoint) throws(StoreError) {
        switch order(at: failpoint) {
        case nil: return
        case .kill?: dieNow()
        case .error?:
            throw .io("failpoint \(failpoint.rawValue): \(String(cString: strerror(EIO)))")
        }
    }

    private static func order(at failpoint: Failpoint) -> FailpointOrder.Action? {
        orders.withLock { $0[failpoint]?.pass() }
    }

    /// Ends the process as a power failure would: nothing is flushed, no connection is closed. The signal may take a
    /// moment to arrive.
    private static func dieNow() -> Never {
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}

/// The action at one failpoint, and when it happens.
struct FailpointOrder: Hashable {
    enum Action: String, CaseIterable {
        case kill
        /// The disk fails at this point, and at every later pass.
        case error
    }

    var action: Action
    /// Passes left until the action happens; 1: at the next one.
    var countdown: Int

    mutating func pass() -> Action? {
        if countdown > 1 {
            countdown -= 1
            return nil
        }
        return action
    }

    /// Reads `commit.beforeSync=kill@37,store.read=error`: without `@`, the first time.
    static func orders(in text: String) throws(FailpointProblem) -> [Failpoint: FailpointOrder] {
        var orders: [Failpoint: FailpointOrder] = [:]
        for part in text.split(whereSeparator: { $0 == "," || $0 == ";" }) {
            let words = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
            guard words.count == 2 else {
                throw FailpointProblem("'\(part)' is no order; write commit.beforeSync=kill@37")
            }
            guard let failpoint = Failpoint(rawValue: words[0]) else {
                let names = Failpoint.allCases.map(\.rawValue).joined(separator: ", ")
                throw FailpointProblem("there is no failpoint '\(words[0])'; there are \(names)")
            }
            guard orders[failpoint] == nil else { throw FailpointProblem("\(words[0]) is named twice") }
            orders[failpoint] = try FailpointOrder(words[1], at: failpoint)
        }
        return orders
    }

    private init(_ text: String, at failpoint: Failpoint) throws(FailpointProblem) {
        let words = text.split(separator: "@", omittingEmptySubsequences: false)
        guard let action = Action(rawValue: String(words[0])) else {
            throw FailpointProblem("\(failpoint.rawValue) cannot '\(words[0])'; write kill or error")
        }
        guard action == .kill || failpoint.canFail else {
            throw FailpointProblem("\(failpoint.rawValue) cannot report an error; only kill is possible")
        }
        guard words.count <= 2, let count = words.count == 2 ? Int(words[1]) : 1, count > 0 else {
            throw FailpointProblem("'\(text)' does not say when; write \(action.rawValue)@37 for the 37th time")
        }
        self.init(action: action, countdown: count)
    }

    init(action: Action, countdown: Int) {
        self.action = action
        self.countdown = countdown
    }
}

/// What is wrong with an order.
struct FailpointProblem: Error, Hashable, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

import HatoModel

@testable import HatoFirebase

/// A simple model of messages: one value at each of a few paths, and listeners. It responds in the order of the
/// native protocol: the events of a write before its response, the first event of a listener behind the response that
/// opened it.
struct ServiceModel {
    /// What goes to the session, in order.
    private(set) var sent: [SessionStateMachine.Event] = []
    private(set) var values: [String: Int] = [:]
    /// All values of each path, the newest last; 0 for none.
    private(set) var history: [String: [Int]] = [:]
    /// The values that the session wrote.
    private(set) var written: Set<Int> = []
    private var listeners: [(subscription: String, path: String)] = []
    private var lastSubscription = 0
    private var lastValue = 0
    private var isTokenOver = false

    /// A value that was never written.
    mutating func nextValue() -> Int {
        lastValue += 1
        return lastValue
    }

    /// The hash of a value: different for different values, and of the right form.
    static func hash(of value: Int?) -> String {
        guard let value else { return "" }
        return Base64.standard.encode([UInt8](repeating: 0, count: 12) + (0..<8).map { UInt8(value >> ($0 * 8) & 255) })
            + "="
    }

    mutating func takeSent() -> SessionStateMachine.Event? { sent.isEmpty ? nil : sent.removeFirst() }

    /// Another client writes.
    mutating func write(_ path: String, _ value: Int) {
        values[path] = value
        history[path, default: [0]].append(value)
        for listener in listeners where listener.path == path { sendValue(of: path, to: listener.subscription) }
    }

    /// A listener loses its right.
    mutating func revoke(at index: Int) {
        guard index < listeners.count else { return }
        cancel(listeners.remove(at: index).subscription, "permission_denied")
    }

    /// The token of the session ends.
    mutating func endToken() {
        isTokenOver = true
        for listener in listeners { cancel(listener.subscription, "token_expired") }
        listeners = []
    }

    /// Answers a call.
    mutating func take(_ call: Int, _ method: String, _ params: [UInt8], isDenied: Bool) -> String? {
        guard let params = try? JSONParser.parse(params) else { return "params are no JSON" }
        if method == "messages.unlisten" {
            listeners.removeAll { $0.subscription == params["subscription"]?.string }
            succeed(call, "{}")
            return nil
        }
        guard let path = params["path"]?.string else { return "no path" }
        if isTokenOver {
            refuse(call, RPCError.unauthenticated(reason: "TOKEN_EXPIRED", "It has expired"))
        } else if isDenied {
            refuse(call, .permissionDenied())
        } else if method == "messages.listen" {
            listen(call, path, params["etag"]?.string)
        } else if method == "messages.get" {
            succeed(call, "{\"value\":\(text(of: path)),\"version\":1}")
        } else if let etag = params["ifMatch"]?.string, etag != Self.etag(of: values[path]) {
            refuse(call, RPCError.failedPrecondition(reason: "etag_mismatch", "It differs"))
        } else {
            let value = Int(params["value"]?.number ?? 0)
            written.insert(value)
            write(path, value)
            succeed(call, "{\"version\":1}")
        }
        return nil
    }

    private mutating func listen(_ call: Int, _ path: String, _ etag: String?) {
        lastSubscription += 1
        let subscription = "l\(lastSubscription)"
        let isUnchanged = etag == Self.etag(of: values[path])
        let end = isUnchanged ? ",\"unchanged\":true}" : "}"
        succeed(call, "{\"subscription\":\"\(subscription)\",\"version\":1,\"epoch\":\"e\"\(end)")
        listeners.append((subscription, path))
        if !isUnchanged { sendValue(of: path, to: subscription) }
    }

    private static func etag(of value: Int?) -> String { value == nil ? "null_etag" : hash(of: value) }

    private func text(of path: String) -> String { values[path].map(String.init) ?? "null" }

    private mutating func sendValue(of path: String, to subscription: String) {
        let events = "[{\"type\":\"put\",\"path\":\"/\",\"data\":\(text(of: path))}]"
        let params = "{\"subscription\":\"\(subscription)\",\"version\":1,\"events\":\(events)}"
        sent.append(.notified(.init(subscription: subscription, params: Array(params.utf8)[...])))
    }

    private mutating func cancel(_ subscription: String, _ reason: String) {
        let params = "{\"subscription\":\"\(subscription)\",\"reason\":\"\(reason)\"}"
        sent.append(.notified(.init(isEnd: true, subscription: subscription, params: Array(params.utf8)[...])))
    }

    private mutating func succeed(_ call: Int, _ result: String) {
        sent.append(.succeeded(call: call, result: Array(result.utf8)[...]))
    }

    private mutating func refuse(_ call: Int, _ error: RPCError) { sent.append(.refused(call: call, error)) }
}

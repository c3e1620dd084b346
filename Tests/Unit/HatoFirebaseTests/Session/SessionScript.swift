import HatoModel

@testable import HatoFirebase

/// A session whose events and actions are written as texts, one line for each action.
struct SessionScript {
    private(set) var machine: SessionStateMachine

    /// A session whose wire stands.
    init(database: DatabaseName? = nil, limits: SessionLimits = SessionLimits()) {
        machine = SessionStateMachine(database: database, host: "127.0.0.1:9000", session: "sess-1", limits: limits)
        _ = machine.handle(.accepted)
        _ = machine.handle(.wireOpened(at: 1_700_000_000_000))
        // The first call is whether there is the database.
        if database != nil { _ = refuses(1, .permissionDenied, "permission_denied") }
    }

    mutating func handle(_ event: SessionStateMachine.Event) -> [String] { machine.handle(event).map(\.line) }

    /// The client sends a message.
    mutating func says(_ message: String) -> [String] { handle(.message(.whole(Array(message.utf8)))) }

    /// The client sends a request.
    mutating func asks(_ number: Int, _ action: String, _ body: String) -> [String] {
        says("{\"t\":\"d\",\"d\":{\"r\":\(number),\"a\":\"\(action)\",\"b\":\(body)}}")
    }

    /// A call succeeds.
    mutating func succeeds(_ call: Int, _ result: String) -> [String] {
        handle(.succeeded(call: call, result: Array(result.utf8)[...]))
    }

    /// The service refuses a call.
    mutating func refuses(
        _ call: Int, _ code: RPCError.Code, _ reason: String, retryable: Bool = false
    ) -> [String] {
        handle(.refused(call: call, RPCError(code, reason: reason, "It is so", retryable: retryable)))
    }

    /// A listener gets events.
    mutating func notifies(_ subscription: String, _ events: String) -> [String] {
        let params = "{\"subscription\":\"\(subscription)\",\"version\":7,\"events\":[\(events)]}"
        return handle(.notified(.init(subscription: subscription, params: Array(params.utf8)[...])))
    }

    /// A listener ends.
    mutating func cancels(_ subscription: String, _ reason: String) -> [String] {
        let params = "{\"subscription\":\"\(subscription)\",\"reason\":\"\(reason)\"}"
        return handle(.notified(.init(isEnd: true, subscription: subscription, params: Array(params.utf8)[...])))
    }

    /// A listen to `path` that has its first value.
    mutating func listens(_ number: Int, _ path: String, _ subscription: String) {
        guard let call = asks(number, "q", "{\"p\":\"\(path)\",\"h\":\"\"}").first?.split(separator: " ")[1],
            let call = Int(call)
        else { return }
        _ = succeeds(call, "{\"subscription\":\"\(subscription)\",\"version\":1,\"epoch\":\"e\"}")
        _ = notifies(subscription, #"{"type":"put","path":"/","data":null}"#)
    }
}

/// The line of a response.
func response(_ number: Int, _ word: String, _ data: String = "\"\"") -> String {
    "send {\"t\":\"d\",\"d\":{\"r\":\(number),\"b\":{\"s\":\"\(word)\",\"d\":\(data)}}}"
}

/// The line of a push.
func push(_ action: String, _ members: String) -> String {
    "send {\"t\":\"d\",\"d\":{\"a\":\"\(action)\",\"b\":{\(members)}}}"
}

/// The line of a push of a token's end.
let tokenEnd = push("ac", #""s":"expired_token","d":"Auth token is expired.""#)

extension SessionStateMachine.Action {
    /// The action as a line.
    var line: String {
        switch self {
        case .send(let text): "send \(String(decoding: text, as: UTF8.self))"
        case .call(let number, let method, let params):
            "call \(number) \(method) \(String(decoding: params, as: UTF8.self))"
        case .authenticate(let number, let credential): "authenticate \(number) \(credential.line)"
        case .schedule(let timer, let due): "schedule \(timer) \(due)"
        case .cancel(let timer): "cancel \(timer)"
        case .close(let end): "close \(end)"
        }
    }
}

extension SessionCredential {
    fileprivate var line: String {
        let override =
            switch override {
            case .none: ""
            case .signedOut: " as null"
            case .variable(let text): " as \(String(decoding: text, as: UTF8.self))"
            }
        return "\(isToken ? "token" : "opaque") \(text)\(override)"
    }
}

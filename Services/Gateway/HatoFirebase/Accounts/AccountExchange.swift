public import HatoModel

/// One account operation over HTTP, as the calls of the auth service that it takes, one after another, and the response
/// in the end. Pure: the gateway makes each call and hands its outcome back.
///
/// ```
/// begin → call → received → call → … → respond
/// ```
public struct AccountExchange: Sendable, SecretHolder {
    /// What is to do next.
    public enum Step: Sendable, Hashable {
        /// Make this call, then hand its outcome to `received`.
        case call(NativeCall)
        /// Send this response: the exchange has ended.
        case respond(AccountResponse)
    }

    /// What the request names.
    public let route: AuthRoute
    private let caller: AccountCaller
    private var work: any AccountWork
    /// The call that is on its way.
    private var pending: NativeCall?

    /// How many bytes of the body are read of a request with this head; nil for a path that is none of the account
    /// dialect. Of a longer body one byte more is enough: `begin` refuses it.
    public static func bodyBytesMax(of head: AccountRequest, _ context: AccountContext) -> Int? {
        guard let route = AuthRoute.find(head.method, head.path, isEmulator: context.isEmulator) else { return nil }
        // Accounts to import come from administrators.
        return head.authorization == nil ? context.limits.bodyBytesMax : context.limits.bodyBytesMax(of: route)
    }

    /// Begins the exchange of a request; nil for a path that is none of the account dialect.
    public static func begin(
        _ request: AccountRequest, _ context: AccountContext
    ) -> (exchange: AccountExchange, step: Step)? {
        guard let route = AuthRoute.find(request.method, request.path, isEmulator: context.isEmulator) else {
            return nil
        }
        var exchange: AccountExchange
        do throws(AuthFault) {
            let caller = try AccountCaller(request, route, context)
            exchange = AccountExchange(route, caller, Refusal(fault: .notFound))
            exchange.work = try AccountWire(request, route, caller, context).work()
            let step = exchange.begin()
            try caller.check(step, of: request, route, context)
            return (exchange, step)
        } catch {
            exchange = AccountExchange(route, .client, Refusal(fault: error))
            return (exchange, exchange.begin())
        }
    }

    private mutating func begin() -> Step { step { (work) throws(AuthFault) in try work.begin() } }

    private init(_ route: AuthRoute, _ caller: AccountCaller, _ work: any AccountWork) {
        self.route = route
        self.caller = caller
        self.work = work
    }

    /// The outcome of the last call: its result, or its error.
    public mutating func received(_ outcome: Result<JSONValue, RPCError>) -> Step {
        guard let call = pending else { return .respond(AuthFault.outage().response) }
        pending = nil
        switch outcome {
        case .success(let result):
            return step { (work) throws(AuthFault) in
                do throws(AuthFault) { return try work.received(result) } catch {
                    // It was done, and the result cannot be read.
                    throw call.changes && error.kind == .outage ? .unknownOutcome : error
                }
            }
        case .failure(let error):
            let errors = errors(of: call)
            return step { (work) throws(AuthFault) in
                if let step = try work.failed(error) { return step }
                throw call.changes && error.isOutcomeUnknown ? .unknownOutcome : errors.fault(error)
            }
        }
    }

    /// The last call has no outcome in its time: the response, and the end of the exchange.
    public mutating func timedOut() -> AccountResponse {
        defer { pending = nil }
        return work.response(to: pending?.changes == true ? .unknownOutcome : .outage())
    }

    private func errors(of call: NativeCall) -> AuthErrors {
        guard case .operation(let operation) = route.target else {
            return AuthErrors(operation: .lookup, isAdministrator: false)
        }
        var isAdministrator = false
        if case .administrator(let key) = caller { isAdministrator = call.identity == .credential(key) }
        return AuthErrors(operation: operation, isAdministrator: isAdministrator)
    }

    private mutating func step(_ next: (inout any AccountWork) throws(AuthFault) -> Step) -> Step {
        do throws(AuthFault) {
            let step = try next(&work)
            if case .call(let call) = step { pending = call }
            return step
        } catch {
            return .respond(work.response(to: error))
        }
    }

    public var description: String { "AccountExchange(\(route.target))" }
}

/// What one operation does: begins with a call or the response, and goes on with each result.
protocol AccountWork: Sendable {
    /// Throws `AuthFault` where the request is refused.
    mutating func begin() throws(AuthFault) -> AccountExchange.Step
    /// Throws `AuthFault` where the result refuses the request.
    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step
    /// Goes on after an error; nil where the error ends the operation as the table of errors says.
    /// Throws `AuthFault` where it has another meaning here.
    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step?
    /// The response of a refusal.
    func response(to fault: AuthFault) -> AccountResponse
}

extension AccountWork {
    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? { nil }
    func response(to fault: AuthFault) -> AccountResponse { fault.response }
}

/// A refusal without a call.
struct Refusal: AccountWork {
    let fault: AuthFault

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { throw fault }
    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step { throw fault }
}

/// A response without a call.
struct Immediate: AccountWork {
    let response: AccountResponse

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .respond(response) }
    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step { .respond(response) }
}

/// One call, whose result becomes the response.
struct OneCall: AccountWork {
    private let call: NativeCall
    private let respond: @Sendable (JSONValue) throws(AuthFault) -> AccountResponse
    private let recover: @Sendable (RPCError) throws(AuthFault) -> AccountResponse?

    /// - Parameter recover: the response after an error that has another meaning here; nil for the others.
    init<Request: RPCRequest>(
        _ request: Request, _ identity: NativeCall.Identity = .none,
        respond: @escaping @Sendable (Request.Result) throws(AuthFault) -> AccountResponse,
        recover: @escaping @Sendable (RPCError) throws(AuthFault) -> AccountResponse? = { (_) throws(AuthFault) in nil }
    ) {
        call = NativeCall(request, identity)
        self.respond = { (value) throws(AuthFault) in try respond(try value.result(of: Request.self)) }
        self.recover = recover
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(call) }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        .respond(try respond(result))
    }

    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        guard let response = try recover(error) else { return nil }
        return .respond(response)
    }
}

extension RPCError {
    /// Whether the call may have been carried out: the connection was lost, the service has stopped or its store has
    /// failed, or nothing that can be read came back.
    fileprivate var isOutcomeUnknown: Bool { !isRetryable && Self.unknownOutcomes.contains(reason ?? "") }

    private static let unknownOutcomes: Set<String> = [
        "bad_answer", "connection_lost", "outcome_unknown", "stopping", "timeout", "unreadable_result",
    ]
}

extension JSONValue {
    /// The result of a method. Throws `AuthFault.outage` for what is none: the service is of another version.
    func result<Request: RPCRequest>(of request: Request.Type) throws(AuthFault) -> Request.Result {
        do throws(FieldError) { return try Request.decodeResult(self) } catch { throw .outage() }
    }
}

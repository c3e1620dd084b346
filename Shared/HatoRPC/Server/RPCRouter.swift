public import HatoModel

/// The handlers of the methods.
public struct RPCRouter: Sendable {
    private(set) var methods: [String: RPCMethod] = [:]

    public init() {}

    /// An asynchronous method: starts when every earlier request of its connection has ended (slow ones excepted);
    /// later requests of its connection start after it, unless it is slow itself.
    ///
    /// - Parameter isSmall: whether its result is always small, so that it starts without free memory.
    public mutating func handle<Request: RPCRequest>(
        _: Request.Type, isSmall: Bool = false,
        _ body: @escaping @Sendable (Request, RPCContext) async throws -> Request.Result
    ) {
        let start: RPCMethod.AsynchronousHandler = { params, context, pending in
            do {
                let result = try await body(try Request.decode(params), context)
                pending.succeed { writer in result.write(into: &writer) }
            } catch {
                pending.fail(Request.showingWhatIsRight(error))
            }
        }
        add(Request.self, isRead: Request.effect == .read && !isSmall, .asynchronous(start))
    }

    /// A synchronous method: called on the event loop in order of arrival, also while earlier ones have not ended.
    /// Never blocks.
    ///
    /// - Parameter isSmall: whether its result is always small, so that it starts without free memory.
    public mutating func handleInOrder<Request: RPCRequest>(
        _: Request.Type, isSmall: Bool = false,
        _ body: @escaping @Sendable (Request, RPCContext, RPCReply<Request>) -> Void
    ) {
        let start: RPCMethod.SynchronousHandler = { params, context, pending in
            do {
                body(try Request.decode(params), context, RPCReply(pending: pending))
            } catch {
                pending.fail(Request.showingWhatIsRight(error))
            }
        }
        add(Request.self, isRead: Request.effect == .read && !isSmall, .synchronous(start))
    }

    /// Throws when a declared method has no handler, naming it.
    public func verify(declared: [any RPCRequest.Type]) throws(RPCServerError) {
        let missing = declared.map { $0.method }.filter { methods[$0] == nil }
        guard missing.isEmpty else { throw .methodsWithoutHandler(missing.sorted()) }
    }

    private mutating func add<Request: RPCRequest>(_: Request.Type, isRead: Bool, _ start: RPCMethod.Start) {
        precondition(methods[Request.method] == nil, "\(Request.method) has two handlers")
        methods[Request.method] = RPCMethod(
            name: Request.method, access: Request.access, isSlow: Request.isSlow,
            isRead: isRead, isForItsResponse: Request.effect == .read && !Request.hasSideEffect,
            start: start,
            ownParameters: Self.ownParameters(of: Request.self))
    }

    mutating func add(_ method: RPCMethod) { methods[method.name] = method }

    /// A method may use `auth`, `as` or `from` for something of its own (`messages.rules.check` evaluates rules `as`
    /// another user).
    private static func ownParameters<Request: RPCRequest>(of _: Request.Type) -> Set<String> {
        Request.fields.names.intersection(["auth", "as", "from"])
    }
}

/// One entry of the router, its types forgotten.
///
/// A class: every request holds that of its method.
final class RPCMethod: Sendable {
    typealias SynchronousHandler = @Sendable (JSONObject, RPCContext, PendingResponse) -> Void
    typealias AsynchronousHandler = @Sendable (JSONObject, RPCContext, PendingResponse) async -> Void

    enum Start: Sendable {
        case synchronous(SynchronousHandler)
        case asynchronous(AsynchronousHandler)
        /// `session.authenticate`, `session.end` and `session.forward` concern the connection itself.
        case authenticate
        case endSession
        case forward
    }

    let name: String
    let access: Access
    let kind: RequestKind
    /// Whether it has no effect but its response: without an id, nothing.
    let isForItsResponse: Bool
    let start: Start
    /// Those of `auth`, `as` and `from` that are parameters of the method itself.
    let ownParameters: Set<String>

    init(
        name: String, access: Access, isSlow: Bool, isRead: Bool = false, isForItsResponse: Bool = false, start: Start,
        ownParameters: Set<String> = []
    ) {
        self.name = name
        self.access = access
        let turn: RequestKind.Start =
            switch start {
            case .synchronous: .immediate
            case .asynchronous: .afterEarlier
            case .authenticate, .endSession, .forward: .session
            }
        kind = RequestKind(start: turn, isSlow: isSlow, isRead: isRead)
        self.isForItsResponse = isForItsResponse
        self.start = start
        self.ownParameters = ownParameters
    }

    /// Why this caller may not call it; nil: it may.
    func accessProblem(_ caller: Caller) -> RPCError? {
        switch (access, caller) {
        case (.anyone, _), (.rules, _), (.signedIn, .user), (_, .administrator): nil
        case (.signedIn, .nobody), (.administrator, .nobody): RPCError.missingCredential
        case (.signedIn, .service(let service)), (.administrator, .service(let service)):
            RPCError.permissionDenied(
                "The service key \"\(service.name)\" may not call \(name); its methods are "
                    + (service.methods.isEmpty ? "none" : service.methods.sorted().joined(separator: ", ")))
        case (.signedIn, .variable), (.administrator, .variable):
            RPCError.permissionDenied("A variable calls methods under the security rules only, and \(name) is none")
        case (.administrator, .user): RPCError.permissionDenied("Only administrators may call \(name)")
        }
    }
}

/// Why a server does not start.
public enum RPCServerError: Error, Sendable, Hashable, CustomStringConvertible {
    case methodsWithoutHandler([String])
    case cannotListen(host: String, port: Int, reason: String)

    public var description: String {
        switch self {
        case .methodsWithoutHandler(let names): "declared methods without a handler: \(names.joined(separator: ", "))"
        case .cannotListen(let host, let port, let reason): "cannot listen on \(host):\(port): \(reason)"
        }
    }
}

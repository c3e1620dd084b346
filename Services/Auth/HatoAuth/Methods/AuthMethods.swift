import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// A group of related methods of the service.
protocol AuthMethods: Sendable {
    var service: AuthService { get }

    /// Adds the handlers of its methods.
    func add(to router: inout RPCRouter)
}

extension AuthMethods {
    var configuration: AuthConfiguration { service.configuration }
    var environment: AuthEnvironment { service.environment }
    var store: any Store { service.store }
    var passwords: PasswordHasher { service.passwords }
    var attempts: AttemptLedger { service.attempts }
    var metrics: AuthMetrics { service.metrics }

    /// Adds a handler whose errors, including the store's, become wire errors.
    func handle<Request: RPCRequest>(
        _: Request.Type, in router: inout RPCRouter,
        _ body: @escaping @Sendable (Self, Request, CallOrigin) async throws -> Request.Result
    ) {
        router.handle(Request.self) { [self] request, context in
            let origin = CallOrigin(context)
            do {
                return try await AuditedCall.$current.withValue(AuditedCall(Request.method, origin)) {
                    try await body(self, request, origin)
                }
            } catch let error as StoreError {
                environment.notices.notice(
                    .refusedByStore, "the store refused", ["method": "\(Request.method)", "error": "\(error)"],
                    level: .error)
                switch error {
                case .closed: throw RPCError.storeClosed
                case .outcomeUnknown: throw RPCError.outcomeUnknown(isIdempotent: request.isIdempotent)
                default: throw RPCError.internalError
                }
            }
        }
    }
}

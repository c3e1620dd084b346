import HatoFollow
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging

/// Methods of the service that belong together.
protocol NotifierMethods: Sendable {
    var service: NotifierService { get }

    /// Adds the handlers of its methods.
    func add(to router: inout RPCRouter)
}

extension NotifierMethods {
    var configuration: NotifierConfiguration { service.configuration }
    var store: any Store { service.store }
    var notices: ThrottledNotices { service.notices }
    var outbox: Outbox { service.outbox }
    var channels: [any Channel] { service.channels }
    var messages: MessagesClient? { service.messages }
    var feeds: TriggerFeeds? { service.feeds }
    var budget: TriggerBudget { service.budget }
    var followers: EventFollowers<OutboxEvent> { service.followers }
    var checks: RequestChecks { service.checks }

    /// Adds a method; what the store says no with becomes an error of the wire.
    func handle<Request: RPCRequest>(
        _: Request.Type, in router: inout RPCRouter,
        _ body: @escaping @Sendable (Self, Request, RPCContext) async throws -> Request.Result
    ) {
        router.handle(Request.self) { [self] request, context in
            do { return try await body(self, request, context) } catch let error as StoreError {
                notices.notice(
                    .refusedByStore, "the store refused", ["method": "\(Request.method)", "error": "\(error)"],
                    level: .error)
                throw error.asRPCError(isIdempotent: request.isIdempotent)
            }
        }
    }
}

import HatoModel
import HatoRPC
import HatoStorage

/// `auth.audit.list`: what has happened.
struct AuditMethods: AuthMethods {
    let service: AuthService

    private static let (pageMax, pageDefault) = (1_000, 100)
    /// Entries that a call looks at.
    private static let visitsMax = 10_000

    func add(to router: inout RPCRouter) {
        handle(Auth.Audit.List.self, in: &router) { methods, request, _ in try await methods.entries(request) }
    }

    func entries(_ request: Auth.Audit.List) async throws -> Auth.Audit.List.Result {
        let limit = request.limit ?? Self.pageDefault
        guard (1...Self.pageMax).contains(limit) else { throw Self.wrong("limit", "from 1 to \(Self.pageMax)") }
        var choice = AuditRows.Choice(uid: request.uid, type: request.type, from: request.from, until: request.until)
        if let uid = request.uid, !UserID.isUid(uid) { throw Self.wrong("uid", "the id of a user") }
        for (name, time) in [("from", request.from), ("until", request.until)] {
            if let time, time < 0 { throw Self.wrong(name, "in milliseconds since 1970") }
        }
        if let after = request.after {
            guard let id = AuditID(text: after) else { throw Self.wrong("after", "the `after` of the previous page") }
            choice.after = id
        }
        return try await store.read { [choice] rows in
            let page = try AuditRows.page(choice, limit: limit, visitsMax: Self.visitsMax, in: rows)
            return Auth.Audit.List.Result(entries: page.entries, after: page.last?.text)
        }
    }

    private static func wrong(_ parameter: String, _ right: String) -> AuthError {
        .invalidFields([FieldProblem(parameter, "INVALID_PAGE_SELECTION", "\(parameter) should be \(right)")])
    }
}

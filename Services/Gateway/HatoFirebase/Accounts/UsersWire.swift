import HatoModel

/// The operations of administrators for many accounts, and session cookies (spec auth §4, §5).
struct UsersWire: Sendable {
    private let wire: AccountWire

    private var limits: AccountLimits { wire.context.limits }
    private var identity: NativeCall.Identity { wire.caller.identity }

    init(_ wire: AccountWire) { self.wire = wire }

    /// Throws `AuthFault`.
    func work(of operation: AuthOperation, _ body: AccountBody) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .createSessionCookie: try cookie(body)
        case .batchDelete: try deletion(body)
        default: try query(body)
        }
    }

    private func cookie(_ body: AccountBody) throws(AuthFault) -> any AccountWork {
        guard let idToken = try body.filled("idToken") else { throw AuthFault("MISSING_ID_TOKEN") }
        try wire.check(idToken)
        let duration = try body.integer("validDuration")
        // The service says which durations are right.
        let seconds = duration == 0 ? nil : duration.map { Int(clamping: min(max($0, -1), 1 << 40)) }
        return OneCall(
            Auth.SessionCookie.Create(idToken: idToken, validForSeconds: seconds), identity
        ) { (result) throws(AuthFault) in
            AccountResponse(["sessionCookie": .string(result.sessionCookie)])
        }
    }

    /// One page, with hashes. The parameters are in the query, of version 3 in the body.
    func export(_ body: AccountBody) throws(AuthFault) -> any AccountWork {
        let parameters = AccountParameters(wire.request.query)
        let inBody = try body.integer("maxResults")
        let asked = parameters["maxResults"].flatMap { Int64($0) } ?? inBody ?? 0
        // 20 is the default and no minimum: libraries for servers request pages of any size.
        let limit = asked < 1 ? 20 : min(Int(clamping: asked), limits.accountsMax)
        let tokenInBody = try body.filled("nextPageToken")
        let token = parameters["nextPageToken"] ?? tokenInBody
        let after = token.flatMap { $0.isEmpty ? Optional.none : $0 }
        return OneCall(Auth.Users.Export(after: after, limit: limit), identity) { (page) throws(AuthFault) in
            AccountResponse(
                JSONObject(present: [
                    "kind": "identitytoolkit#DownloadAccountResponse", "users": .array(page.users.map(\.exported)),
                    "nextPageToken": .text(page.after),
                ]))
        }
    }

    private func deletion(_ body: AccountBody) throws(AuthFault) -> any AccountWork {
        let uids = try body.texts("localIds")
        guard (1...limits.accountsMax).contains(uids.count) else { throw AuthFault("LOCAL_ID_LIST_EXCEEDS_LIMIT") }
        return DeletionOfSeveral(uids: uids, isForced: try body.flag("force") ?? false, identity: identity)
    }

    private func query(_ body: AccountBody) throws(AuthFault) -> any AccountWork {
        guard try body.objects("expression").isEmpty else { throw .unimplemented("query by expression") }
        if try body.flag("returnUserInfo") == false {
            var request = Auth.Users.List(limit: 1)
            request.total = true
            return OneCall(request, identity) { (page) throws(AuthFault) in
                AccountResponse(["recordsCount": .string(String(page.total ?? 0))])
            }
        }
        let order = try body.choice("order", among: ["ORDER_UNSPECIFIED", "ASC", "DESC"])
        if order == "DESC" { throw .unimplemented("query in the order DESC") }
        let fields = ["SORT_BY_FIELD_UNSPECIFIED", "USER_ID", "NAME", "CREATED_AT", "LAST_LOGIN_AT", "USER_EMAIL"]
        if let field = try body.choice("sortBy", among: fields), !fields.prefix(2).contains(field) {
            throw .unimplemented("query by \(field)")
        }
        let limit = try body.count("limit") ?? 0
        let offset = try body.count("offset") ?? 0
        guard offset <= limits.queryOffsetMax else {
            throw .invalidArgument("The offset of a query should be at most \(limits.queryOffsetMax).")
        }
        let countMax = 500
        return QueryOfUsers(offset: offset, limit: limit == 0 ? countMax : min(limit, countMax), identity: identity)
    }
}

/// `batchDelete`: each account in a call of its own; without `force` only disabled ones.
struct DeletionOfSeveral: AccountWork {
    let uids: [String]
    let isForced: Bool
    let identity: NativeCall.Identity
    private var index = 0
    private var errors: [JSONValue] = []
    /// Whether the call on its way asks if the account is disabled.
    private var isLookup = false

    init(uids: [String], isForced: Bool, identity: NativeCall.Identity) {
        self.uids = uids
        self.isForced = isForced
        self.identity = identity
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { step() }

    private mutating func step() -> AccountExchange.Step {
        guard index < uids.count else {
            return .respond(AccountResponse(errors.isEmpty ? [:] : ["errors": .array(errors)]))
        }
        isLookup = !isForced
        return .call(isLookup ? NativeCall(Auth.Users.Get(uid: uids[index]), identity) : deletion)
    }

    private var deletion: NativeCall { NativeCall(Auth.Users.Delete(uid: uids[index]), identity) }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        if isLookup {
            isLookup = false
            if try result.result(of: Auth.Users.Get.self).disabled { return .call(deletion) }
            errors.append([
                "index": .number(Double(index)), "localId": .string(uids[index]),
                "message": "NOT_DISABLED : Disable the account before batch deletion.",
            ])
        }
        index += 1
        return step()
    }

    /// Unknown ids are no error.
    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        guard error.code == .notFound || error.code == .invalidArgument else { return nil }
        index += 1
        return step()
    }
}

/// `query` of accounts in the order of their ids: page by page to the offset, then the accounts.
struct QueryOfUsers: AccountWork {
    private static let pageSize = 1_000

    private var offset: Int
    private let limit: Int
    private let identity: NativeCall.Identity
    private var found: [Auth.Account] = []

    init(offset: Int, limit: Int, identity: NativeCall.Identity) {
        self.offset = offset
        self.limit = limit
        self.identity = identity
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(page(after: nil)) }

    private func page(after: String?) -> NativeCall {
        let count = min(Self.pageSize, max(1, offset + limit - found.count))
        return NativeCall(Auth.Users.List(after: after, limit: count), identity)
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        let page = try result.result(of: Auth.Users.List.self)
        found += page.users.dropFirst(offset).prefix(limit - found.count)
        offset = max(0, offset - page.users.count)
        if let after = page.after, found.count < limit { return .call(self.page(after: after)) }
        return .respond(
            AccountResponse([
                "recordsCount": .string(String(found.count)), "userInfo": .array(found.map { ShownAccount($0).json }),
            ]))
    }
}

/// `DELETE …/accounts` of an emulator: all accounts, page by page, and the kept codes.
struct DeletionOfAll: AccountWork {
    private var uids: [String] = []
    private var after: String?
    private var isListing = true

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(page) }

    private var page: NativeCall { NativeCall(Auth.Users.List(after: after, limit: 1_000), .gateway) }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        if isListing {
            let page = try result.result(of: Auth.Users.List.self)
            uids = page.users.map(\.uid).reversed()
            after = page.after
            isListing = false
        }
        return step()
    }

    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        error.code == .notFound ? step() : nil
    }

    private mutating func step() -> AccountExchange.Step {
        if let uid = uids.popLast() { return .call(NativeCall(Auth.Users.Delete(uid: uid), .gateway)) }
        guard after != nil else { return .respond(AccountResponse([:], effect: .forgetCodes)) }
        isListing = true
        return .call(page)
    }
}

import HatoModel

/// `lookup`, `update` and `delete`, of users and of administrators (spec auth §3, §5).
struct AccountChangeWire: Sendable {
    private let wire: AccountWire
    private let body: AccountBody

    private static let attributes = [
        "USER_ATTRIBUTE_NAME_UNSPECIFIED", "EMAIL", "DISPLAY_NAME", "PROVIDER", "PHOTO_URL", "PASSWORD",
        "RAW_USER_INFO",
    ]

    init(_ wire: AccountWire, _ body: AccountBody) {
        self.wire = wire
        self.body = body
    }

    /// Throws `AuthFault`, in the order of Firebase's checks.
    func work(of operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .lookup: try lookup()
        case .delete: try deletion()
        default: try update()
        }
    }

    // MARK: Look-up and deletion

    private func lookup() throws(AuthFault) -> any AccountWork {
        if wire.caller.isPrivileged {
            if body.has("initialEmail") { throw .unimplemented("lookup by initialEmail") }
            let names = try names()
            let hasToken = try body.filled("idToken") != nil
            if !names.isEmpty || !hasToken {
                return LookupOfSeveral(names: names, identity: wire.caller.identity)
            }
        }
        return OneCall(Auth.Account.Get(), try user()) { (account) throws(AuthFault) in
            LookupOfSeveral.response([account])
        }
    }

    private func user() throws(AuthFault) -> NativeCall.Identity {
        guard let idToken = try body.filled("idToken") else { throw AuthFault("MISSING_ID_TOKEN") }
        return try wire.user(idToken)
    }

    private func names() throws(AuthFault) -> [Auth.Users.Get] {
        var names: [Auth.Users.Get] = []
        for uid in try body.texts("localId") { names.append(Auth.Users.Get(uid: uid)) }
        for email in try body.texts("email") { names.append(Auth.Users.Get(email: email)) }
        for number in try body.texts("phoneNumber") {
            var name = Auth.Users.Get()
            name.phoneNumber = number
            names.append(name)
        }
        for identity in try body.objects("federatedUserId") {
            guard let provider = try identity.filled("providerId"), let rawId = try identity.filled("rawId") else {
                continue
            }
            var name = Auth.Users.Get()
            name.provider = provider
            name.providerUid = rawId
            names.append(name)
        }
        let countMax = wire.context.limits.identifiersMax
        guard names.count <= countMax else {
            throw .invalidArgument("A look-up should have at most \(countMax) identifiers.")
        }
        return names
    }

    private func deletion() throws(AuthFault) -> any AccountWork {
        let members: JSONObject = ["kind": "identitytoolkit#DeleteAccountResponse"]
        if wire.caller.isPrivileged {
            guard let uid = try body.filled("localId") else { throw AuthFault("MISSING_LOCAL_ID") }
            return OneCall(Auth.Users.Delete(uid: uid), wire.caller.identity) { (_) throws(AuthFault) in
                AccountResponse(members)
            }
        }
        return OneCall(Auth.Account.Delete(), try user()) { (_) throws(AuthFault) in AccountResponse(members) }
    }

    // MARK: Update

    private func update() throws(AuthFault) -> any AccountWork {
        for name in ["provider", "upgradeToFederatedLogin", "mfa", "deletePasskey"] where body.has(name) {
            throw .unimplemented(name)
        }
        if wire.caller.isPrivileged { return try updateOfAnother() }
        let code = try body.filled("oobCode")
        let idToken = try body.filled("idToken")
        guard code != nil || idToken != nil else {
            throw AuthFault("INVALID_REQ_TYPE", "Unsupported request parameters.")
        }
        guard !body.has("customAttributes"), !body.has("linkProviderUserInfo") else {
            throw AuthFault("INSUFFICIENT_PERMISSION")
        }
        if let code { return CodeWire.application(of: code) }
        guard !body.has("disableUser") else { throw AuthFault("OPERATION_NOT_ALLOWED") }
        let change = try Change(body, Self.attributes)
        let user = try user()
        guard !change.isEmpty else {
            return OneCall(Auth.Account.Get(), user) { (account) throws(AuthFault) in Self.response(account) }
        }
        var request = Auth.Account.Update()
        request.email = change.email
        request.password = change.password
        request.displayName = change.displayName
        request.photoUrl = change.photoUrl
        request.deleteAttributes = change.deletions.isEmpty ? nil : change.deletions
        request.deleteProviders = change.providers.isEmpty ? nil : change.providers
        return OneCall(request, user) { (result) throws(AuthFault) in
            Self.response(result.account, result, changesEmail: change.email != nil)
        }
    }

    private func updateOfAnother() throws(AuthFault) -> any AccountWork {
        guard let uid = try body.filled("localId") else { throw AuthFault("MISSING_LOCAL_ID") }
        let change = try Change(body, Self.attributes)
        var request = Auth.Users.Update(uid: uid)
        request.email = change.email
        request.password = change.password
        request.displayName = change.displayName
        request.photoUrl = change.photoUrl
        request.deleteAttributes = change.deletions.isEmpty ? nil : change.deletions
        request.deleteProviders = change.providers.isEmpty ? nil : change.providers
        request.emailVerified = try body.flag("emailVerified")
        request.disabled = try body.flag("disableUser")
        if !change.providers.contains("phone") { request.phoneNumber = try body.filled("phoneNumber") }
        if let claims = try body.text("customAttributes") {
            let claims = claims.isEmpty ? "{}" : claims
            try AccountText.check(customAttributes: claims)
            request.customAttributes = claims
        }
        request.linkProviderUserInfo = try link()
        // The service ends all earlier tokens now, whatever second was named.
        let isRevocation = try body.integer("validSince").map { $0 > 0 } ?? false
        return UpdateOfAnother(
            request: request, isRevocation: isRevocation, changesEmail: change.email != nil,
            identity: wire.caller.identity)
    }

    private func link() throws(AuthFault) -> Auth.Account.Provider? {
        guard let entry = try body.object("linkProviderUserInfo") else { return nil }
        guard let provider = try entry.filled("providerId") else { throw AuthFault("MISSING_PROVIDER_ID") }
        guard let rawId = try entry.filled("rawId") else { throw AuthFault("MISSING_RAW_ID") }
        var identity = Auth.Account.Provider(providerId: provider, rawId: rawId)
        identity.email = try entry.filled("email")
        identity.displayName = try entry.filled("displayName")
        identity.photoUrl = try entry.filled("photoUrl")
        return identity
    }

    /// The account, and tokens where earlier ones ended: an ID token alone would break SDKs.
    static func response(
        _ account: Auth.Account, _ result: Auth.Account.Update.Result? = nil, changesEmail: Bool = false
    ) -> AccountResponse {
        var members = JSONObject(present: [
            "kind": "identitytoolkit#SetAccountInfoResponse", "localId": .string(account.uid),
            "email": .text(account.email), "displayName": .text(account.displayName),
            "photoUrl": .text(account.photoUrl), "emailVerified": .bool(account.emailVerified),
            "providerUserInfo": ShownAccount.providers(account.providerUserInfo),
            "passwordHash": .text(ShownAccount(account).passwordHash),
            "newEmail": changesEmail ? .text(account.email) : Optional.none,
        ])
        if let result, let refreshToken = result.refreshToken {
            for member in SessionWire.tokens(result.idToken, refreshToken, result.expiresIn) {
                members[member.name] = member.value
            }
        }
        return AccountResponse(members)
    }

    /// The members that users and administrators may change.
    private struct Change: Sendable {
        var email: String?
        var password: String?
        var displayName: String?
        var photoUrl: String?
        var deletions: [Auth.AccountAttribute] = []
        var providers: [String]

        /// An empty name or picture is a deletion; what is set and deleted at once is deleted. Throws `AuthFault`.
        init(_ body: AccountBody, _ attributes: [String]) throws(AuthFault) {
            providers = try body.texts("deleteProvider")
            let names = try body.choices("deleteAttribute", among: attributes)
            if let name = names.first(where: { $0 == "PROVIDER" || $0 == "RAW_USER_INFO" }) {
                throw .unimplemented("deleteAttribute \(name)")
            }
            email = try body.filled("email")
            password = try body.filled("password")
            displayName = try body.text("displayName")
            photoUrl = try body.text("photoUrl")
            if names.contains("EMAIL") { delete(.email, \.email) }
            if names.contains("PASSWORD") { delete(.password, \.password) }
            if names.contains("DISPLAY_NAME") || displayName == "" { delete(.displayName, \.displayName) }
            if names.contains("PHOTO_URL") || photoUrl == "" { delete(.photoUrl, \.photoUrl) }
        }

        private mutating func delete(_ attribute: Auth.AccountAttribute, _ path: WritableKeyPath<Change, String?>) {
            deletions.append(attribute)
            self[keyPath: path] = nil
        }

        var isEmpty: Bool {
            [email, password, displayName, photoUrl].allSatisfy { $0 == nil } && deletions.isEmpty && providers.isEmpty
        }
    }
}

/// `lookup` of administrators: each identifier in a call of its own, each account once.
struct LookupOfSeveral: AccountWork {
    let names: [Auth.Users.Get]
    let identity: NativeCall.Identity
    private var next = 0
    private var found: [Auth.Account] = []
    private var uids: Set<[UInt8]> = []

    init(names: [Auth.Users.Get], identity: NativeCall.Identity) {
        self.names = names
        self.identity = identity
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { step() }

    private mutating func step() -> AccountExchange.Step {
        guard next < names.count else { return .respond(Self.response(found)) }
        next += 1
        return .call(NativeCall(names[next - 1], identity))
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        let account = try result.result(of: Auth.Users.Get.self)
        if uids.insert(Array(account.uid.utf8)).inserted { found.append(account) }
        return step()
    }

    /// An identifier of which there is no account, or which cannot be one.
    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        error.code == .notFound || error.code == .invalidArgument ? step() : nil
    }

    /// Without accounts there is no member `users`: SDKs for servers rely on it.
    static func response(_ accounts: [Auth.Account]) -> AccountResponse {
        var members: JSONObject = ["kind": "identitytoolkit#GetAccountInfoResponse"]
        if !accounts.isEmpty { members["users"] = .array(accounts.map { ShownAccount($0).json }) }
        return AccountResponse(members)
    }
}

/// `update` of administrators: the change, then the revocation.
struct UpdateOfAnother: AccountWork {
    let request: Auth.Users.Update
    let changesEmail: Bool
    let identity: NativeCall.Identity
    private var calls: [NativeCall]

    init(request: Auth.Users.Update, isRevocation: Bool, changesEmail: Bool, identity: NativeCall.Identity) {
        self.request = request
        self.changesEmail = changesEmail
        self.identity = identity
        calls = request.members.count > 1 ? [NativeCall(request, identity)] : []
        if isRevocation { calls.append(NativeCall(Auth.Users.Revoke(uid: request.uid), identity)) }
        if calls.isEmpty { calls = [NativeCall(Auth.Users.Get(uid: request.uid), identity)] }
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(calls.removeFirst()) }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        // All three have an account as result.
        let account = try result.result(of: Auth.Users.Get.self)
        if !calls.isEmpty { return .call(calls.removeFirst()) }
        return .respond(AccountChangeWire.response(account, changesEmail: changesEmail))
    }
}

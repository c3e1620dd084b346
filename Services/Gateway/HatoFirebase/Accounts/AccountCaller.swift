/// The caller of an account operation, by what the request shows (spec auth §1).
enum AccountCaller: Sendable, Hashable, SecretHolder {
    case client
    /// The key is passed on: the service checks it.
    case administrator(String)
    /// The administrator of an emulator: the gateway acts for it with its own key.
    case owner

    private static let bearer = "bearer "

    /// Throws `AuthFault` for a request without the credential that its route needs.
    init(_ request: AccountRequest, _ route: AuthRoute, _ context: AccountContext) throws(AuthFault) {
        if let header = request.authorization, header.lowercased().hasPrefix(Self.bearer) {
            self = try Self.administrator(
                header.dropFirst(Self.bearer.count).trimmingBlanks, isEmulator: context.isEmulator)
            return
        }
        switch route.credential {
        case .none: break
        case .administrator: throw .missingAdministrator
        case .apiKey: try Self.checkAPIKey(request, context)
        }
        self = .client
    }

    private static func checkAPIKey(_ request: AccountRequest, _ context: AccountContext) throws(AuthFault) {
        guard let key = request.shownKey else { throw .missingAPIKey }
        guard context.apiKeys.contain(key) else { throw .wrongAPIKey }
    }

    /// Checks the first step of an operation: a key that no service is shown proves nothing, and such a request needs
    /// an API key as one without. Throws `AuthFault`.
    func check(
        _ step: AccountExchange.Step, of request: AccountRequest, _ route: AuthRoute, _ context: AccountContext
    ) throws(AuthFault) {
        guard case .administrator(let key) = self, route.credential != .none else { return }
        switch step {
        case .call(let call): if call.identity == .credential(key) { return }
        // What administrators get without a call says nothing of any account.
        case .respond(let response): if response.status >= 400 || route.credential == .administrator { return }
        }
        try Self.checkAPIKey(request, context)
    }

    private static func administrator(_ token: String, isEmulator: Bool) throws(AuthFault) -> AccountCaller {
        if isEmulator, EmulatorCredential(token) == .owner { return .owner }
        guard !token.isEmpty, token.utf8.count <= UnsignedToken.bytesMax else { throw .wrongAdministrator }
        return .administrator(token)
    }

    /// Whether the request is privileged.
    var isPrivileged: Bool { self != .client }

    /// Of calls in which the caller acts as itself.
    var identity: NativeCall.Identity {
        switch self {
        case .client: .none
        case .administrator(let key): .credential(key)
        case .owner: .gateway
        }
    }

    /// Of calls that are open to clients: an administrator's key is shown, so that the service refuses a wrong one.
    var shown: NativeCall.Identity { self == .owner ? .none : identity }

    var description: String {
        switch self {
        case .client: "client"
        case .administrator: "administrator"
        case .owner: "owner"
        }
    }
}

extension Substring {
    /// Without blanks at both ends.
    fileprivate var trimmingBlanks: String {
        var text = self
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}

public import HatoModel

/// A call of the auth service, which the gateway makes for an account operation.
public struct NativeCall: Sendable, Hashable, SecretHolder {
    /// The caller as the service sees it.
    public enum Identity: Sendable, Hashable, SecretHolder {
        case none
        /// This credential: an ID token, or the administrator key of the request.
        case credential(String)
        /// The gateway itself, with its administrator key; in emulator mode only.
        case gateway
        /// The user of an unsigned token; in emulator mode only.
        case gatewayAs(UnsignedToken)

        public var description: String {
            switch self {
            case .none: "none"
            case .credential: "credential"
            case .gateway: "gateway"
            case .gatewayAs: "gatewayAs"
            }
        }
    }

    /// The name of the method.
    public var method: String
    /// Its params without `auth`, `as` and `from`.
    public var params: JSONObject
    /// The caller.
    public var identity: Identity
    /// Whether it changes something, so that a client must not repeat it unasked when its outcome is unknown.
    public let changes: Bool

    /// Whether the service may be busy with it for long, and responds to what comes behind it on its connection only
    /// then: it makes the hash of a password, or reads many accounts.
    public let holdsOthers: Bool

    init<Request: RPCRequest>(_ request: Request, _ identity: Identity = .none) {
        method = Request.method
        params = request.members
        let hashes = params["password"] != nil || params["newPassword"] != nil
        holdsOthers = !Request.isSlow && (hashes || Request.method == Auth.Users.Import.method)
        self.identity = identity
        // A refresh token brings the same successor again.
        changes = Request.effect == .write && Request.method != Auth.Refresh.method
    }

    /// A call that a service refuses in any case: for its params, or for its caller before.
    init<Request: RPCRequest>(withoutParams request: Request.Type, _ identity: Identity) {
        method = Request.method
        params = [:]
        self.identity = identity
        (changes, holdsOthers) = (false, false)
    }

    /// Whether it may take as long as many accounts do.
    public var isImport: Bool { method == Auth.Users.Import.method }

    /// The params with the credential; nil where the gateway has no administrator key and needs one.
    public func params(administratorKey: String?) -> JSONObject? {
        var params = params
        switch identity {
        case .none: break
        case .credential(let credential): params["auth"] = .string(credential)
        case .gateway, .gatewayAs:
            guard let administratorKey else { return nil }
            params["auth"] = .string(administratorKey)
        }
        if case .gatewayAs(let token) = identity {
            params["as"] = token.timelessIdentity
        }
        return params
    }

    public var description: String { "NativeCall(\(method))" }
}

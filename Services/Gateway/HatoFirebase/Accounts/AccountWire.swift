import HatoModel

/// Reads a request of the account dialect into the work of its operation: bodies become calls of the auth service,
/// results become bodies (spec auth §3-§5). The operations are in the types that this one chooses from.
struct AccountWire: Sendable {
    let request: AccountRequest
    let route: AuthRoute
    let caller: AccountCaller
    let context: AccountContext

    init(_ request: AccountRequest, _ route: AuthRoute, _ caller: AccountCaller, _ context: AccountContext) {
        self.request = request
        self.route = route
        self.caller = caller
        self.context = context
    }

    /// Throws `AuthFault` for a request that needs no call to be refused.
    func work() throws(AuthFault) -> any AccountWork {
        switch route.target {
        case .notFound: throw .notFound
        case .unimplemented(let name): throw .unimplemented(name)
        case .operation(let operation):
            try check(project: route.project)
            if let tenant = AccountParameters(request.query)["tenantId"], !tenant.isEmpty {
                throw .unimplemented("tenants")
            }
            // The refusals of these have other words.
            if operation != .token, operation != .actionForm { try checkLength() }
            return try work(of: operation)
        }
    }

    /// Also a body that nothing reads is refused: the request is not complete. Throws `AuthFault`.
    private func checkLength() throws(AuthFault) {
        let bytesMax = context.limits.bodyBytesMax(of: route)
        guard !request.isBodyTooLong, request.body.count <= bytesMax else {
            throw AccountBody.tooLong(bytesMax: bytesMax)
        }
    }

    private func work(of operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .token:
            return try TokenExchange(request, context.limits).work(projectNumber: context.projectNumber)
        case .actionPage, .actionForm, .emulatorAction: return try ActionWire(self).work(of: operation)
        case .projectConfig, .passwordPolicy, .recaptchaConfig, .recaptchaParams, .keys, .openIDConfiguration,
            .certificates, .emulatorReady, .emulatorOobCodes, .emulatorVerificationCodes, .emulatorConfig, .config:
            return try ProjectWire(self).document(operation)
        case .emulatorDeleteAccounts: return DeletionOfAll()
        case .batchGet: return try UsersWire(self).export(try body())
        case .batchCreate:
            if case .administrator(let key) = caller, request.body.count > context.limits.bodyBytesMax {
                return LargeImport(self, key: key)
            }
            return try importOfUsers()
        default: return try work(of: operation, try body())
        }
    }

    private func work(of operation: AuthOperation, _ body: AccountBody) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .signUp, .signInWithPassword, .signInWithCustomToken, .signInWithEmailLink, .signInWithIdp,
            .createAuthUri:
            return try SignInWire(self, body).work(of: operation)
        case .lookup, .update, .delete: return try AccountChangeWire(self, body).work(of: operation)
        case .sendOobCode, .resetPassword: return try CodeWire(self, body).work(of: operation)
        case .createSessionCookie, .batchDelete, .query:
            return try UsersWire(self).work(of: operation, body)
        case .updateConfig, .emulatorUpdateConfig: return try ProjectWire(self).update(body, operation)
        // The secrets of providers are not here: there is nothing to revoke.
        case .revokeToken: return Immediate(response: AccountResponse([:]))
        default: throw .notFound
        }
    }

    /// Throws `AuthFault` for what refuses the whole request.
    func importOfUsers() throws(AuthFault) -> ImportOfUsers {
        try ImportOfUsers(try body(), caller.identity, context.limits)
    }

    /// The body. Throws `AuthFault`, also for tenants and for another project.
    private func body() throws(AuthFault) -> AccountBody {
        let bytesMax = context.limits.bodyBytesMax(of: route)
        let memoryMax = context.limits.memoryMax(ofBody: bytesMax)
        let body =
            request.method == "GET"
            ? AccountBody() : try AccountBody(request.body, bytesMax: bytesMax, memoryMax: memoryMax)
        if try body.filled("tenantId") != nil { throw .unimplemented("tenants") }
        let project = try body.filled("targetProjectId")
        if !caller.isPrivileged, project != nil {
            throw AuthFault(
                "INSUFFICIENT_PERMISSION", "Only authenticated requests can specify target_project_id.")
        }
        try check(project: project)
        return body
    }

    /// Another project is not here: what is meant for its accounts must not change those of this one. An emulator is
    /// all projects. Throws `AuthFault`.
    private func check(project: String?) throws(AuthFault) {
        guard let project, !context.isEmulator, project != context.project, project != context.projectNumber else {
            return
        }
        throw AuthFault("PROJECT_NOT_FOUND", "The project here is \(context.project).")
    }

    // MARK: What operations share

    /// The identity of a user's ID token. Throws `AuthFault` for a text that is none by its length.
    func user(_ idToken: String) throws(AuthFault) -> NativeCall.Identity {
        try check(idToken)
        if context.isEmulator, let token = UnsignedToken(idToken) { return .gatewayAs(token) }
        return .credential(idToken)
    }

    /// Throws `AuthFault` for a text that is no ID token by its length.
    func check(_ idToken: String) throws(AuthFault) {
        guard idToken.utf8.count <= context.limits.tokenBytesMax else { throw AuthFault("INVALID_ID_TOKEN") }
    }

    /// The language of the client, where it is one.
    var locale: String? {
        guard let locale = request.locale, (2...35).contains(locale.utf8.count) else { return nil }
        let subtags = locale.split(omittingEmptySubsequences: false) { $0 == "-" || $0 == "_" }
        let isLocale = subtags.allSatisfy { subtag in
            (1...8).contains(subtag.utf8.count) && subtag.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        }
        return isLocale ? locale : nil
    }

    /// The API key for links, which clients want to find there.
    var linkKey: String { request.shownKey ?? context.project }
}

/// Texts that Firebase checks by a simple form.
enum AccountText {
    /// Whether the text may be an e-mail address: something on both sides of one `@`.
    static func isEmail(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty }
    }

    /// Whether the text is an absolute URI with a host.
    static func isAbsoluteURI(_ text: String) -> Bool { host(of: text) != nil }

    /// The host of an absolute URI in lower case, without port; nil for what is none.
    static func host(of text: String) -> String? {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }), let end = text.firstRange(of: "://") else {
            return nil
        }
        let scheme = text[..<end.lowerBound]
        guard let first = scheme.utf8.first, isLetter(first),
            scheme.utf8.allSatisfy({ isLetter($0) || [0x2B, 0x2D, 0x2E].contains($0) || (0x30...0x39).contains($0) })
        else { return nil }
        let authority = text[end.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" && $0 != "\\" }
        guard !authority.contains("@") else { return nil }
        let host =
            authority.first == "["
            ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        guard !host.isEmpty, authority.hasPrefix(host) else { return nil }
        let port = authority.utf8.dropFirst(host.utf8.count)
        let isPort = port.first == UInt8(ascii: ":") && port.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
        return port.isEmpty || isPort ? host.lowercased() : nil
    }

    /// Whether a browser may be sent there.
    static func isWebPage(_ text: String) -> Bool {
        let scheme = text.lowercased()
        return (scheme.hasPrefix("https://") || scheme.hasPrefix("http://")) && isAbsoluteURI(text)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    /// The claims that custom claims never replace (spec auth §4).
    private static let reservedClaims: Set<String> = [
        "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti",
        "nbf", "nonce", "sid", "sub",
    ]

    /// Throws `AuthFault` for a reserved name among custom claims.
    static func check(claims: JSONObject) throws(AuthFault) {
        if let member = claims.members.first(where: { reservedClaims.contains($0.name) }) {
            throw AuthFault("FORBIDDEN_CLAIM", member.name)
        }
    }

    /// Throws `AuthFault` for a text that is no JSON object of custom claims.
    static func check(customAttributes text: String) throws(AuthFault) {
        guard text.unicodeScalars.count <= 1000 else { throw AuthFault("CLAIMS_TOO_LARGE") }
        guard case .object(let claims)? = try? JSONParser.parse(text) else { throw AuthFault("INVALID_CLAIMS") }
        try check(claims: claims)
    }
}

import HatoModel

/// Sign-ups and sign-ins (spec auth §3).
struct SignInWire: Sendable {
    private let wire: AccountWire
    private let body: AccountBody

    init(_ wire: AccountWire, _ body: AccountBody) {
        self.wire = wire
        self.body = body
    }

    /// Throws `AuthFault`, in the order of Firebase's checks.
    func work(of operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .signUp: try signUp()
        case .signInWithPassword: try signIn()
        case .signInWithCustomToken: try customToken()
        case .signInWithEmailLink: try emailLink()
        case .signInWithIdp: try ProviderSignIn(wire, body)
        default: try createAuthUri()
        }
    }

    // MARK: Sign-up

    private func signUp() throws(AuthFault) -> any AccountWork {
        let idToken = try body.filled("idToken")
        if wire.caller.isPrivileged, idToken == nil { return try creation() }
        guard try body.filled("localId") == nil else { throw AuthFault("UNEXPECTED_PARAMETER", "User ID") }
        let email = try body.text("email")
        let password = try body.filled("password")
        var request = Auth.SignUp()
        if idToken != nil || password != nil || email?.isEmpty == false {
            guard let email, !email.isEmpty else { throw AuthFault("MISSING_EMAIL") }
            guard let password else { throw AuthFault("MISSING_PASSWORD") }
            if let idToken { try wire.check(idToken) }
            request = Auth.SignUp(email: email, password: password, displayName: try body.filled("displayName"))
            request.idToken = idToken
            request.locale = wire.locale
        } else if email != nil {
            // An empty address must not make an anonymous account.
            throw AuthFault("INVALID_EMAIL")
        }
        return OneCall(request, wire.caller.shown) { (result) throws(AuthFault) in
            guard let session = result.session else {
                throw AuthFault("OPERATION_NOT_ALLOWED", "A mail was sent to this address: it says how to go on.")
            }
            return SessionWire(session).signUp
        }
    }

    /// An administrator makes an account, without a session.
    private func creation() throws(AuthFault) -> any AccountWork {
        guard try body.objects("mfaInfo").isEmpty else { throw .unimplemented("mfaInfo") }
        var request = Auth.Users.Create()
        request.uid = try body.filled("localId")
        request.email = try body.filled("email")
        request.emailVerified = try body.flag("emailVerified")
        request.password = try body.filled("password")
        request.displayName = try body.filled("displayName")
        request.photoUrl = try body.filled("photoUrl")
        request.phoneNumber = try body.filled("phoneNumber")
        request.disabled = try body.flag("disabled")
        return OneCall(request, wire.caller.identity) { (account) throws(AuthFault) in
            AccountResponse(
                JSONObject(present: [
                    "kind": "identitytoolkit#SignupNewUserResponse", "localId": .string(account.uid),
                    "email": .text(account.email), "displayName": .text(account.displayName),
                ]))
        }
    }

    // MARK: Sign-in

    private func signIn() throws(AuthFault) -> any AccountWork {
        guard let email = try body.text("email") else { throw AuthFault("MISSING_EMAIL") }
        guard AccountText.isEmail(email) else { throw AuthFault("INVALID_EMAIL") }
        guard let password = try body.filled("password") else { throw AuthFault("MISSING_PASSWORD") }
        return OneCall(Auth.SignIn(email: email, password: password), wire.caller.shown) {
            (session) throws(AuthFault) in
            SessionWire(session).signIn
        }
    }

    private func customToken() throws(AuthFault) -> any AccountWork {
        guard let token = try body.filled("token") else { throw AuthFault("MISSING_CUSTOM_TOKEN") }
        if wire.context.isEmulator { return try CustomTokenSignIn(token) }
        return OneCall(Auth.SignInWithCustomToken(token: token), wire.caller.shown) { (session) throws(AuthFault) in
            SessionWire(session).customToken
        }
    }

    private func emailLink() throws(AuthFault) -> any AccountWork {
        let idToken = try body.filled("idToken")
        if let idToken { try wire.check(idToken) }
        guard let email = try body.filled("email") else { throw AuthFault("MISSING_EMAIL") }
        guard let code = try body.filled("oobCode") else { throw AuthFault("MISSING_OOB_CODE") }
        guard AccountText.isEmail(email) else { throw AuthFault("INVALID_EMAIL") }
        var request = Auth.SignInWithCode(email: email, code: code)
        request.createAccount = idToken == nil ? true : nil
        request.idToken = idToken
        return OneCall(request, wire.caller.shown) { (session) throws(AuthFault) in SessionWire(session).emailLink }
    }

    // MARK: Ways to sign in

    private func createAuthUri() throws(AuthFault) -> any AccountWork {
        if try body.filled("providerId") != nil { throw .unimplemented("pop-up and redirect sign-in") }
        guard let identifier = try body.filled("identifier") else { throw AuthFault("MISSING_IDENTIFIER") }
        guard let continueUri = try body.filled("continueUri") else { throw AuthFault("MISSING_CONTINUE_URI") }
        guard AccountText.isEmail(identifier) else { throw AuthFault("INVALID_IDENTIFIER") }
        guard AccountText.isAbsoluteURI(continueUri) else { throw AuthFault("INVALID_CONTINUE_URI") }
        let sessionId = try body.filled("sessionId") ?? wire.context.sessionId
        return SignInMethodsOfEmail(
            email: identifier, sessionId: sessionId, readsSettings: wire.context.isEmulator)
    }
}

/// `createAuthUri` with an e-mail address: how its account signs in.
///
/// Where accounts are hidden, the service says the same for every address as for one without an account, and clients do
/// not learn which it is. An emulator does say it: its gateway reads the settings first.
struct SignInMethodsOfEmail: AccountWork {
    let email: String
    let sessionId: String
    let readsSettings: Bool
    private var hides: Bool?

    init(email: String, sessionId: String, readsSettings: Bool) {
        self.email = email
        self.sessionId = sessionId
        self.readsSettings = readsSettings
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step {
        .call(readsSettings ? NativeCall(Auth.Settings.Get(), .gateway) : NativeCall(Auth.SignInMethods(email: email)))
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        if readsSettings, hides == nil {
            hides = try result.result(of: Auth.Settings.Get.self).hidesWhoExists ?? true
            return .call(NativeCall(Auth.SignInMethods(email: email)))
        }
        let found = try result.result(of: Auth.SignInMethods.self)
        var members: JSONObject = ["kind": "identitytoolkit#CreateAuthUriResponse"]
        if hides.map({ !$0 }) ?? found.registered {
            var providers: [String] = []
            for method in found.methods {
                let provider = method == "emailLink" ? "password" : method
                if !providers.contains(provider) { providers.append(provider) }
            }
            members["allProviders"] = .array(providers.map { .string($0) })
            members["registered"] = .bool(found.registered)
            members["signinMethods"] = .array(found.methods.map { .string($0) })
        }
        members["sessionId"] = .string(sessionId)
        return .respond(AccountResponse(members))
    }
}

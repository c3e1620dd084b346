import HatoModel

/// The codes of mails: `sendOobCode`, `resetPassword`, and `update` with a code (spec auth §3, §6).
struct CodeWire: Sendable {
    private let wire: AccountWire
    private let body: AccountBody

    private static let requestTypes = [
        "OOB_REQ_TYPE_UNSPECIFIED", "PASSWORD_RESET", "OLD_EMAIL_AGREE", "NEW_EMAIL_ACCEPT", "VERIFY_EMAIL",
        "RECOVER_EMAIL", "EMAIL_SIGNIN", "VERIFY_AND_CHANGE_EMAIL", "REVERT_SECOND_FACTOR_ADDITION",
    ]

    init(_ wire: AccountWire, _ body: AccountBody) {
        self.wire = wire
        self.body = body
    }

    /// Throws `AuthFault`, in the order of Firebase's checks.
    func work(of operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        operation == .resetPassword ? try resetPassword() : try sendCode()
    }

    // MARK: Requests

    private func sendCode() throws(AuthFault) -> any AccountWork {
        let type = try body.choice("requestType", among: Self.requestTypes) ?? Self.requestTypes[0]
        guard type != Self.requestTypes[0] else { throw AuthFault("MISSING_REQ_TYPE") }
        let returnsLink = try body.flag("returnOobLink") ?? false
        guard !returnsLink || wire.caller.isPrivileged else { throw AuthFault("INSUFFICIENT_PERMISSION") }
        guard let codeType = Self.codeType(type) else { throw .unimplemented("requestType \(type)") }
        let continueUrl = try body.filled("continueUrl")
        if let continueUrl, !AccountText.isAbsoluteURI(continueUrl) {
            throw AuthFault("INVALID_CONTINUE_URI", "An absolute URI with scheme and host is expected.")
        }
        try checkLinkDomain()
        let context = wire.context
        var request = Auth.Code.Request(type: codeType)
        // Of an emulator every page is one.
        if !context.isEmulator { request.continueUrl = continueUrl }
        let user = try subject(of: codeType, &request)
        request.locale = wire.locale
        let links = ActionLinks(
            origin: context.origin, isEmulator: context.isEmulator, apiKey: wire.linkKey, locale: wire.locale,
            continueUrl: continueUrl)
        if context.isEmulator {
            return CodeOfEmulator(request: request, user: user, links: links, returnsLink: returnsLink)
        }
        if returnsLink { request.returnCode = true }
        return OneCall(request, user ?? wire.caller.identity) { (result) throws(AuthFault) in
            let link = result.code.map { links.link(to: $0, result, codeType) }
            return Self.response(email: result.email, code: result.code, link: link)
        }
    }

    /// Reads the addresses, and the user where an ID token says it. Throws `AuthFault`.
    private func subject(
        of type: Auth.CodeType, _ request: inout Auth.Code.Request
    ) throws(AuthFault) -> NativeCall.Identity? {
        let idToken = try body.filled("idToken")
        let email = try body.filled("email")
        if type == .changeEmail {
            guard let newEmail = try body.filled("newEmail") else { throw AuthFault("MISSING_NEW_EMAIL") }
            request.newEmail = newEmail
        }
        switch type {
        case .verifyEmail, .changeEmail:
            if let idToken { return try wire.user(idToken) }
            guard wire.caller.isPrivileged else {
                throw AuthFault(type == .verifyEmail ? "INVALID_ID_TOKEN" : "MISSING_ID_TOKEN")
            }
            fallthrough
        default:
            // The address may be missing behind a URL that the service refuses first.
            guard email != nil || request.continueUrl != nil else { throw AuthFault("MISSING_EMAIL") }
            request.email = email
            return nil
        }
    }

    /// Links go to this gateway. Throws `AuthFault` for another domain.
    private func checkLinkDomain() throws(AuthFault) {
        guard let domain = try body.filled("linkDomain")?.lowercased() else { return }
        guard domain == AccountText.host(of: wire.context.origin) || wire.context.linkDomains.contains(domain) else {
            // The libraries for servers show this text as it is: no blank before the colon.
            throw AuthFault(
                "INVALID_HOSTING_LINK_DOMAIN: The provided hosting link domain is not configured in Firebase Hosting "
                    + "or is not owned by the current project. This cannot be a default hosting domain (web.app or "
                    + "firebaseapp.com).")
        }
    }

    private static func codeType(_ type: String) -> Auth.CodeType? {
        switch type {
        case "PASSWORD_RESET": .passwordReset
        case "VERIFY_EMAIL": .verifyEmail
        case "EMAIL_SIGNIN": .signIn
        case "VERIFY_AND_CHANGE_EMAIL": .changeEmail
        default: nil
        }
    }

    /// Firebase's name of a type; those that it has not are passwords to set.
    static func requestType(_ type: Auth.CodeType) -> String {
        switch type {
        case .passwordReset, .invite, .signUp: "PASSWORD_RESET"
        case .verifyEmail: "VERIFY_EMAIL"
        case .signIn: "EMAIL_SIGNIN"
        case .changeEmail: "VERIFY_AND_CHANGE_EMAIL"
        case .recoverEmail: "RECOVER_EMAIL"
        }
    }

    static func response(email: String, code: String? = nil, link: String? = nil) -> AccountResponse {
        AccountResponse(
            JSONObject(present: [
                "kind": "identitytoolkit#GetOobConfirmationCodeResponse", "email": .string(email),
                "oobCode": .text(code), "oobLink": .text(link),
            ]))
    }

    // MARK: Codes

    private func resetPassword() throws(AuthFault) -> any AccountWork {
        guard !body.has("oldPassword") else { throw .unimplemented("resetPassword with oldPassword") }
        guard let code = try body.filled("oobCode") else { throw AuthFault("MISSING_OOB_CODE") }
        let email = try body.filled("email")
        guard let newPassword = try body.filled("newPassword") else {
            return OneCall(Auth.Code.Check(code: code, email: email), wire.caller.shown) { (found) throws(AuthFault) in
                Self.response(found)
            }
        }
        var request = Auth.Code.Apply(code: code, email: email)
        request.newPassword = newPassword
        return OneCall(request, wire.caller.shown) { (found) throws(AuthFault) in Self.response(found) }
    }

    private static func response(_ found: Auth.Code.Found) -> AccountResponse {
        AccountResponse(
            JSONObject(present: [
                "kind": "identitytoolkit#ResetPasswordResponse", "requestType": .string(requestType(found.type)),
                "email": .text(found.email), "newEmail": .text(found.newEmail),
            ]))
    }

    /// `update` with nothing but a code.
    static func application(of code: String) -> any AccountWork {
        OneCall(Auth.Code.Apply(code: code)) { (found) throws(AuthFault) in
            AccountResponse(
                JSONObject(present: [
                    "kind": "identitytoolkit#SetAccountInfoResponse", "email": .text(found.newEmail ?? found.email),
                    "newEmail": .text(found.newEmail), "emailVerified": true,
                ]))
        } recover: { (error) throws(AuthFault) in
            // The code is for another operation.
            guard error.code == .invalidArgument, error.reason != "EXPIRED_OOB_CODE" else { return nil }
            throw AuthFault("INVALID_OOB_CODE")
        }
    }
}

/// The links of mails, with the parameters that Firebase's SDKs read (spec auth §6).
struct ActionLinks: Sendable, Hashable {
    let origin: String
    let isEmulator: Bool
    let apiKey: String
    let locale: String?
    let continueUrl: String?

    /// The link of the service where it names a page, with the API key; else one to the gateway's own page.
    func link(to code: String, _ result: Auth.Code.Request.Result, _ type: Auth.CodeType) -> String {
        guard !isEmulator, let link = result.link else { return link(to: code, type) }
        return "\(link)&apiKey=\(AccountPercentCoding.encoded(apiKey))"
    }

    private func link(to code: String, _ type: Auth.CodeType) -> String {
        var parameters = [
            ("mode", ActionMode(type).rawValue), ("lang", locale ?? "en"), ("oobCode", code), ("apiKey", apiKey),
        ]
        if let continueUrl { parameters.append(("continueUrl", continueUrl)) }
        let query = parameters.map { "\($0)=\(AccountPercentCoding.encoded($1))" }.joined(separator: "&")
        return "\(origin)\(isEmulator ? "/emulator/action" : "/__/auth/action")?\(query)"
    }
}

/// `sendOobCode` in emulator mode: no mail is sent, the code is kept for `oobCodes` (spec auth §8).
struct CodeOfEmulator: AccountWork {
    private enum Stage: Sendable, Hashable {
        case account
        case code
        /// An address without account: whether that may be said.
        case settings
    }

    private var request: Auth.Code.Request
    private let user: NativeCall.Identity?
    private let links: ActionLinks
    private let returnsLink: Bool
    private var stage: Stage

    init(request: Auth.Code.Request, user: NativeCall.Identity?, links: ActionLinks, returnsLink: Bool) {
        self.request = request
        self.request.returnCode = true
        self.user = user
        self.links = links
        self.returnsLink = returnsLink
        stage = user == nil ? .code : .account
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step {
        if let user { return .call(NativeCall(Auth.Account.Get(), user)) }
        return .call(NativeCall(request, .gateway))
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        switch stage {
        case .account:
            guard let email = try result.result(of: Auth.Account.Get.self).email else {
                throw AuthFault("MISSING_EMAIL")
            }
            request.email = email
            stage = .code
            return .call(NativeCall(request, .gateway))
        case .settings:
            guard try result.result(of: Auth.Settings.Get.self).hidesWhoExists ?? true else {
                throw AuthFault("EMAIL_NOT_FOUND")
            }
            return .respond(CodeWire.response(email: request.email ?? ""))
        case .code:
            let issued = try result.result(of: Auth.Code.Request.self)
            guard let code = issued.code else { throw .outage() }
            let link = links.link(to: code, issued, request.type)
            var response = CodeWire.response(
                email: issued.email, code: returnsLink ? code : nil, link: returnsLink ? link : nil)
            response.effect = .remember(
                OobCodeLog.Entry(
                    email: request.email ?? issued.email, newEmail: request.newEmail,
                    requestType: CodeWire.requestType(request.type), code: code, link: link))
            return .respond(response)
        }
    }

    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        guard stage == .code, request.type == .passwordReset, error.reason == "EMAIL_NOT_FOUND" else { return nil }
        stage = .settings
        return .call(NativeCall(Auth.Settings.Get(), .gateway))
    }
}

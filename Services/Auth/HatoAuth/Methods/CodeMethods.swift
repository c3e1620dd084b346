import HatoModel
import HatoRPC
import HatoStorage

/// `auth.code.…`: codes that prove who receives the mail of an address.
struct CodeMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Code.Request.self, in: &router) { try await $0.request($1, $2) }
        handle(Auth.Code.Check.self, in: &router) { try await $0.check($1, $2) }
        handle(Auth.Code.Apply.self, in: &router) { try await $0.apply($1, $2) }
    }

    // MARK: Requests

    /// The mail is sent after the response: neither the response nor its time shows whether one is.
    func request(_ request: Auth.Code.Request, _ origin: CallOrigin) async throws -> Auth.Code.Request.Result {
        // A service key, too, only where it lists the method: then it is seen as an administrator.
        let isPrivileged = origin.caller.isAdministrator
        let returnsCode = request.returnCode == true
        try refuse(request, isPrivileged: isPrivileged)
        let subject = try subject(of: request, origin)
        let policy = IssuePolicy(
            makesAccounts: SignUpPolicy(configuration).allowsAccount(of: subject),
            hides: configuration.hidesWhoExists && !isPrivileged)
        var draft = service.newCode(
            subject.type, locale: request.locale ?? configuration.mailLocale, continueUrl: request.continueUrl)
        draft.code.session = subject.session
        let issue: @Sendable (Bool) async throws -> CodeRecord? = { [self, draft] isSilent in
            try await service.write { rows -> CodeRecord? in
                var queue = try MailQueueChange(configuration.limits, in: rows)
                guard !isSilent else {
                    try draft.issueNothing(subject, queue, in: rows)
                    return nil
                }
                let resolution = try subject.resolve(
                    service, makesAccounts: policy.makesAccounts, now: draft.code.createdAt, in: rows)
                switch resolution {
                case .send(let resolved): return try draft.issue(to: resolved, mailed: !returnsCode, &queue, in: rows)
                case .nobody(let error):
                    guard policy.hides else { throw error }
                    try draft.issueNothing(subject, queue, in: rows)
                    return nil
                }
            }.outcome
        }
        let issued = isPrivileged ? try await issue(false) : try await admitted(subject, origin, issue)
        if !returnsCode { service.mail?.wake() }
        return result(of: issued, subject, request)
    }

    private struct IssuePolicy: Sendable {
        /// Whether codes for signing in go to addresses without an account, too.
        var makesAccounts: Bool
        /// Whether the caller must not learn which addresses have accounts.
        var hides: Bool
    }

    /// In the order of spec auth §3.
    private func refuse(_ request: Auth.Code.Request, isPrivileged: Bool) throws {
        if request.returnCode == true, !isPrivileged { throw AuthError.insufficientPermission }
        switch request.type {
        case .invite, .recoverEmail, .signUp:
            throw AuthError.invalidFields([
                FieldProblem("type", "INVALID_REQ_TYPE", "Codes of the type \(request.type.rawValue) are not requested")
            ])
        case .signIn:
            if !configuration.allowsCodeSignIn { throw AuthError.operationNotAllowed }
        case .passwordReset:
            if !configuration.allowsPasswordSignIn { throw AuthError.passwordSignInDisabled }
        case .verifyEmail, .changeEmail: break
        }
        try configuration.links.check(request.continueUrl, domains: configuration.continueDomains)
        try MailLocale.check(request.locale)
        if request.returnCode != true, service.mail == nil { throw AuthError.mailNotConfigured }
    }

    private func subject(of request: Auth.Code.Request, _ origin: CallOrigin) throws -> CodeSubject {
        var problems: [FieldProblem] = []
        func address(_ policy: AccountFormPolicy, _ text: String?, _ parameter: String, _ reason: String) -> String? {
            guard let text else {
                problems.append(FieldProblem(parameter, reason, "The e-mail address is missing"))
                return nil
            }
            do { return try policy.email(text) } catch {
                problems.append(FieldProblem(parameter, error.reason, error.message))
                return nil
            }
        }
        let isAdministrator = origin.caller.isAdministrator
        let isOwn = !isAdministrator && (request.type == .verifyEmail || request.type == .changeEmail)
        let account: CodeSubject.Account?
        if isOwn {
            account = .own(try origin.user())
            if request.email != nil {
                problems.append(
                    FieldProblem("email", "INVALID_REQ_TYPE", "Leave the address out: the code is for your own account")
                )
            }
        } else {
            // It names an account, and gets no mail.
            let isNameOnly = request.type == .changeEmail || request.returnCode == true
            let policy = AccountFormPolicy(configuration, takesStored: isNameOnly)
            account = address(policy, request.email, "email", "MISSING_EMAIL").map { .email($0) }
        }
        var newEmail: String?
        if request.type == .changeEmail {
            let policy = AccountFormPolicy(configuration, isOwn: !isAdministrator)
            newEmail = address(policy, request.newEmail, "newEmail", "MISSING_NEW_EMAIL")
        } else if request.newEmail != nil {
            problems.append(FieldProblem("newEmail", "INVALID_REQ_TYPE", "Only changeEmail has a new address"))
        }
        guard problems.isEmpty, let account else { throw AuthError.invalidFields(problems) }
        return CodeSubject(type: request.type, account: account, newEmail: newEmail)
    }

    /// Counts the request by the client, by the address and by the account, and at last among all of them: what one
    /// client requests too often takes nothing from the others. `issue` learns whether nothing is sent because others
    /// have requested too much for the address: an error would show from which networks its owner signs in. What it
    /// refuses does not count.
    func admitted<Outcome: Sendable>(
        _ subject: CodeSubject, _ origin: CallOrigin,
        _ issue: @Sendable (_ isSilent: Bool) async throws -> Outcome
    ) async throws -> Outcome {
        try attempts.admit(.code, from: origin.address)
        let subjects = try await counted(subject, origin)
        switch service.codeRequests.take(subjects) {
        case .admitted: break
        case .silent(let wait):
            guard case .email = subject.account, configuration.hidesWhoExists else { throw tooMany(subject, wait) }
            return try await issue(true)
        case .refused(let wait): throw tooMany(subject, wait)
        }
        do {
            try attempts.admitCodeOfAll()
            return try await issue(false)
        } catch {
            service.codeRequests.giveBack(subjects)
            throw error
        }
    }

    private func tooMany(_ subject: CodeSubject, _ wait: Int64) -> AuthError {
        subject.type == .passwordReset
            ? .tooManyResets(retryAfterMilliseconds: wait) : .tooManyAttempts(retryAfterMilliseconds: wait)
    }

    /// Requests from a network from which the account has signed in before do not count for its address: others do not
    /// use up its codes.
    private func counted(_ subject: CodeSubject, _ origin: CallOrigin) async throws -> [CodeRequestLedger.Subject] {
        var subjects: [CodeRequestLedger.Subject] = []
        func count(_ email: String, of account: AccountRecord?) {
            let mark = NetworkMark(origin.address, key: service.refreshKey)
            let isKnown = mark.isContained(in: account?.networks)
            let network = isKnown ? origin.address?.network : origin.address?.site
            subjects.append(.requester(email, network: network ?? ""))
            if !isKnown { subjects.append(.address(email)) }
        }
        switch subject.account {
        case .own(let user):
            subjects.append(.account(user.uid))
            let account = try await store.read { try AccountRows.find(user.uid, in: $0) }
            if subject.newEmail == nil, let email = account?.email { count(email, of: account) }
        case .email(let email):
            count(email, of: try await store.read { try AccountRows.find(.email(email), in: $0) })
        }
        if let newEmail = subject.newEmail { subjects.append(.address(newEmail)) }
        return subjects
    }

    private func result(
        of code: CodeRecord?, _ subject: CodeSubject, _ request: Auth.Code.Request
    ) -> Auth.Code.Request.Result {
        var result = Auth.Code.Request.Result(email: subject.address ?? code?.to ?? "")
        guard request.returnCode == true, let code else { return result }
        let text = service.codeSecrets.text(code)
        result.code = text
        result.digits = service.codeSecrets.digits(code)
        result.link = configuration.links.link(
            code.type, code: text, locale: request.locale ?? configuration.mailLocale, continueUrl: request.continueUrl)
        return result
    }

    // MARK: Codes

    private static let applied: [Auth.CodeType] = [
        .verifyEmail, .passwordReset, .changeEmail, .invite, .recoverEmail, .signUp,
    ]

    func check(_ request: Auth.Code.Check, _ origin: CallOrigin) async throws -> Auth.Code.Found {
        let checker = try CodeChecker(
            service, code: request.code, email: request.email, types: Auth.CodeType.allCases)
        return try await checker.audited {
            try await checker.take(from: origin) { [service] code, rows in
                _ = try CodeUse(service).account(of: code, in: rows)
                return code.found
            }
        }
    }

    func apply(_ request: Auth.Code.Apply, _ origin: CallOrigin) async throws -> Auth.Code.Found {
        let checker = try CodeChecker(service, code: request.code, email: request.email, types: Self.applied)
        var hash: PasswordHash?
        if let newPassword = request.newPassword {
            hash = try await self.hash(newPassword, for: checker, origin)
        }
        let found = try await checker.audited {
            try await checker.take(from: origin) { [service, environment, hash] code, rows in
                guard hash != nil || !code.needsPassword else { throw AuthError.missingNewPassword }
                guard hash == nil || code.takesPassword else { throw AuthError.superfluousNewPassword }
                return try CodeUse(service).use(code, passwordHash: hash, now: environment.now(), in: rows)
            }
        }
        service.mail?.wake()
        if found.type == .signUp { metrics.count(.signedUp) }
        return found
    }

    /// A code that is right first, then a password that is good: only then it is hashed, and the code used up.
    private func hash(_ newPassword: String, for checker: CodeChecker, _ origin: CallOrigin) async throws
        -> PasswordHash
    {
        let names: [String] = try await checker.audited {
            try await checker.take(from: origin) { [service, configuration] code, rows in
                guard code.takesPassword else { throw AuthError.superfluousNewPassword }
                guard configuration.allowsPasswordSignIn else { throw AuthError.passwordSignInDisabled }
                let account = try CodeUse(service).account(of: code, in: rows)
                guard account != nil || code.type == .signUp else { throw AuthError.invalidCode }
                return (account?.signInNames ?? []) + [code.to]
            }
        }
        let password = try AccountFormPolicy(configuration).newPassword(newPassword, names: names)
        return try await passwords.hash(password, for: origin.hashingClient)
    }
}

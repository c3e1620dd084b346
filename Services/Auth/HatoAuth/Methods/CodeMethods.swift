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
        let isPrivileged = origin.isPrivileged
        let returnsCode = request.returnCode == true
        try refuse(request, isPrivileged: isPrivileged)
        let subject = try subject(of: request, origin)
        if !isPrivileged { try admit(subject, origin) }
        let policy = IssuePolicy(
            makesAccounts: SignUpPolicy(configuration).allowsCodeSignUp(of: subject.address),
            hides: configuration.hidesWhoExists && !isPrivileged)
        let draft = service.newCode(
            subject.type, locale: request.locale ?? configuration.mailLocale, continueUrl: request.continueUrl)
        let issued = try await service.write { [self] rows -> CodeRecord? in
            var queue = try MailQueueChange(configuration.limits, in: rows)
            let resolution = try subject.resolve(
                configuration, makesAccounts: policy.makesAccounts, now: draft.code.createdAt, in: rows)
            switch resolution {
            case .send(let resolved): return try draft.issue(to: resolved, mailed: !returnsCode, &queue, in: rows)
            case .nobody(let error):
                guard policy.hides else { throw error }
                try draft.issueNothing(subject, queue, in: rows)
                return nil
            }
        }.outcome
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
        case .invite, .recoverEmail:
            throw AuthError.invalidFields([
                FieldProblem("type", "INVALID_REQ_TYPE", "Codes of the type \(request.type.rawValue) are not requested")
            ])
        case .signIn:
            if !configuration.allowsCodeSignIn { throw AuthError.operationNotAllowed }
        case .passwordReset:
            if !configuration.allowsPasswordSignIn { throw AuthError.passwordSignInDisabled }
        case .verifyEmail, .changeEmail: break
        }
        try CodeLinks.check(request.continueUrl, domains: configuration.continueDomains)
        try MailLocale.check(request.locale)
        if request.returnCode != true, service.mail == nil { throw AuthError.mailNotConfigured }
    }

    private func subject(of request: Auth.Code.Request, _ origin: CallOrigin) throws -> CodeSubject {
        var problems: [FieldProblem] = []
        func address(_ text: String?, _ parameter: String, _ reason: String, isOwn: Bool = false) -> String? {
            guard let text else {
                problems.append(FieldProblem(parameter, reason, "The e-mail address is missing"))
                return nil
            }
            do { return try AccountFormPolicy(configuration, isOwn: isOwn).email(text) } catch {
                problems.append(FieldProblem(parameter, error.reason, error.message))
                return nil
            }
        }
        let isOwn = !origin.isPrivileged && (request.type == .verifyEmail || request.type == .changeEmail)
        let account: CodeSubject.Account?
        if isOwn {
            account = .own(try origin.user())
            if request.email != nil {
                problems.append(
                    FieldProblem("email", "INVALID_REQ_TYPE", "Leave the address out: the code is for your own account")
                )
            }
        } else {
            account = address(request.email, "email", "MISSING_EMAIL").map { .email($0) }
        }
        var newEmail: String?
        if request.type == .changeEmail {
            newEmail = address(request.newEmail, "newEmail", "MISSING_NEW_EMAIL", isOwn: !origin.isPrivileged)
        } else if request.newEmail != nil {
            problems.append(FieldProblem("newEmail", "INVALID_REQ_TYPE", "Only changeEmail has a new address"))
        }
        guard problems.isEmpty, let account else { throw AuthError.invalidFields(problems) }
        return CodeSubject(type: request.type, account: account, newEmail: newEmail)
    }

    /// Counts the request by the client, by the address and by the account, and among all of them.
    private func admit(_ subject: CodeSubject, _ origin: CallOrigin) throws {
        try attempts.admit(.code, from: origin.address)
        var subjects: [CodeRequestLedger.Subject] = []
        switch subject.account {
        case .own(let user): subjects.append(.account(user.uid))
        case .email(let email): subjects.append(.address(email))
        }
        if let newEmail = subject.newEmail { subjects.append(.address(newEmail)) }
        guard let wait = service.codeRequests.take(subjects) else { return }
        throw subject.type == .passwordReset
            ? AuthError.tooManyResets(retryAfterMilliseconds: wait)
            : AuthError.tooManyAttempts(retryAfterMilliseconds: wait)
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

    private static let applied: [Auth.CodeType] = [.verifyEmail, .passwordReset, .changeEmail, .invite, .recoverEmail]

    func check(_ request: Auth.Code.Check, _ origin: CallOrigin) async throws -> Auth.Code.Found {
        let checker = try CodeChecker(
            service, code: request.code, email: request.email, types: Auth.CodeType.allCases)
        return try await checker.take(from: origin) { code, rows in
            _ = try Self.account(of: code, in: rows)
            return code.found
        }
    }

    func apply(_ request: Auth.Code.Apply, _ origin: CallOrigin) async throws -> Auth.Code.Found {
        let checker = try CodeChecker(service, code: request.code, email: request.email, types: Self.applied)
        guard let newPassword = request.newPassword else {
            let found = try await checker.take(from: origin) { [self] code, rows in
                guard !code.setsPassword else { throw AuthError.missingNewPassword }
                var change = AccountChange()
                change.emailVerified = true
                if code.type == .changeEmail || code.type == .recoverEmail { change.email = code.to }
                return try use(code, change, now: environment.now(), in: rows)
            }
            service.mail?.wake()
            return found
        }
        // A code that is right first, then a password that is good: only then it is hashed, and the code used up.
        let before = try await checker.take(from: origin) { [configuration] code, rows in
            guard code.setsPassword else { throw AuthError.superfluousNewPassword }
            guard configuration.allowsPasswordSignIn else { throw AuthError.passwordSignInDisabled }
            return try Self.account(of: code, in: rows)
        }
        guard let before else { throw AuthError.invalidCode }
        let names = [before.email, before.username].compactMap { $0 }
        let password = try AccountFormPolicy(configuration).newPassword(newPassword, names: names)
        let hash = try await passwords.hash(password, for: origin.hashingClient)
        return try await checker.take(from: origin) { [self] code, rows in
            var change = AccountChange()
            change.emailVerified = true
            change.passwordHash = hash
            return try use(code, change, now: environment.now(), in: rows)
        }
    }

    /// The account of a code; nil for a code for signing in where there is none yet. Throws `AuthError.invalidCode`
    /// when it is not the account any more for which the code was made.
    private static func account(of code: CodeRecord, in rows: some StoreReading) throws -> AccountRecord? {
        guard let uid = code.uid else { return nil }
        guard let account = try AccountRows.find(uid, in: rows), code.concerns(account) else {
            throw AuthError.invalidCode
        }
        guard !account.disabled else { throw AuthError.userDisabled }
        return account
    }

    private func use(
        _ code: CodeRecord, _ change: AccountChange, now: Int64, in rows: AuthTransaction
    ) throws -> Auth.Code.Found {
        guard let before = try Self.account(of: code, in: rows) else { throw AuthError.invalidCode }
        let account = change.applied(to: before, now: now)
        do { try AccountRows.checkNames(of: account, replacing: before, in: rows) } catch AuthError.emailExists {
            throw AuthError.newEmailExists
        }
        let ended = change.endsSessions(before, account) ? try SessionRows.ids(of: account.uid, in: rows) : []
        if code.type == .changeEmail { try service.issueRecovery(of: before, to: account, in: rows) }
        AccountRows.put(account, replacing: before, in: rows)
        for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
        CodeRows.delete(code, in: rows)
        return code.found
    }
}

extension CodeRecord {
    fileprivate var setsPassword: Bool { type == .passwordReset || type == .invite }
}

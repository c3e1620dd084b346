import HatoModel
import HatoRPC
import HatoStorage

/// `auth.signUp` with an e-mail address where its result is the same for every address (`signUpAlwaysAccepts`): the
/// mail to the address says how to go on, so that only its receiver learns whether it has an account.
///
/// There is no account before the code of the mail is used: neither a sign-in nor a taken username shows which
/// addresses were new.
extension SignUpMethod {
    /// Throws `AuthError` for what has nothing to do with the address.
    func accept(_ request: Auth.SignUp, _ origin: CallOrigin) async throws {
        _ = try AccountFormPolicy(configuration).label(request.label)
        let checked = try checked(AccountForm(request))
        try configuration.links.check(request.continueUrl, domains: configuration.continueDomains)
        try MailLocale.check(request.locale)
        guard service.mail != nil else { throw AuthError.mailNotConfigured }
        guard let email = checked.email, let password = checked.password else {
            throw AuthError.invalidFields([FieldProblem("email", "MISSING_EMAIL", "The e-mail address is missing")])
        }
        try attempts.admit(.signUp, from: origin.address)
        let username = checked.username
        // The transaction checks again.
        try await store.read { try Self.requireFree(username, in: $0) }
        let subject = CodeSubject(type: .verifyEmail, account: .email(email))
        let isSilent = try await CodeMethods(service: service).admit(subject, origin)
        let hash = try await passwords.hash(password, for: origin.hashingClient)
        let locale = request.locale ?? configuration.mailLocale
        var new = service.newCode(.verifyEmail, locale: locale, continueUrl: request.continueUrl)
        new.code.signUp = AcceptedAccount(
            passwordHash: hash, username: username, displayName: checked.displayName)
        var taken = service.newCode(.passwordReset, locale: locale, continueUrl: request.continueUrl)
        taken.mail.isOfTakenAddress = true
        _ = try await service.write { [limits = configuration.limits, new, taken] rows in
            var queue = try MailQueueChange(limits, in: rows)
            try Self.requireFree(username, in: rows)
            let found = try AccountRows.find(.email(email), in: rows)
            guard !isSilent, found?.disabled != true else { return try new.issueNothing(subject, queue, in: rows) }
            _ = try (found == nil ? new : taken).issue(
                to: CodeSubject.Resolved(to: email, account: found), mailed: true, &queue, in: rows)
        }
        service.mail?.wake()
    }

    private static func requireFree(_ username: String?, in rows: some StoreReading) throws {
        guard let username, try rows.row(AuthKey.username(username)) != nil else { return }
        throw AuthError.usernameExists
    }
}

import HatoModel
import HatoRPC
import HatoStorage

/// `auth.signUp` with an e-mail address where its result is the same for every address (`signUpAlwaysAccepts`): the
/// mail to the address says how to go on, so that only its receiver learns whether it has an account.
///
/// There is no account before the code of the mail is used: neither a sign-in nor a taken username shows which
/// addresses were new. Nothing of the form but the address is kept, as another person may have signed up with it: the
/// password comes with the code, and the user gives the names after signing in.
extension SignUpMethod {
    /// Throws `AuthError` for what has nothing to do with the address.
    func accept(_ request: Auth.SignUp, _ origin: CallOrigin) async throws {
        _ = try AccountFormPolicy(configuration).label(request.label)
        let checked = try await checked(AccountForm(request))
        try configuration.links.check(request.continueUrl, domains: configuration.continueDomains)
        try MailLocale.check(request.locale)
        guard service.mail != nil else { throw AuthError.mailNotConfigured }
        guard let email = checked.email else {
            throw AuthError.invalidFields([FieldProblem("email", "MISSING_EMAIL", "The e-mail address is missing")])
        }
        try attempts.admit(.signUp, from: origin.address)
        let (username, subject) = (checked.username, CodeSubject(type: .signUp, account: .email(email)))
        let locale = request.locale ?? configuration.mailLocale
        let new = service.newCode(.signUp, locale: locale, continueUrl: request.continueUrl)
        var taken = service.newCode(.passwordReset, locale: locale, continueUrl: request.continueUrl)
        taken.mail.isOfTakenAddress = true
        try await CodeMethods(service: service).admitted(subject, origin) { [service, new, taken] isSilent in
            _ = try await service.write { [limits = service.configuration.limits] rows in
                var queue = try MailQueueChange(limits, in: rows)
                if let username, try rows.row(AuthKey.username(username)) != nil { throw AuthError.usernameExists }
                let found = try AccountRows.find(.email(email), in: rows)
                guard !isSilent, found?.disabled != true else { return try new.issueNothing(subject, queue, in: rows) }
                _ = try (found == nil ? new : taken).issue(
                    to: CodeSubject.Resolved(to: email, account: found), mailed: true, &queue, in: rows)
            }
        }
        service.mail?.wake()
    }
}

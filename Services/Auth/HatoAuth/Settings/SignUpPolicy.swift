import HatoModel

/// Whether people may make accounts by themselves (spec auth §3, in the order of its errors).
struct SignUpPolicy: Sendable {
    private let configuration: AuthConfiguration

    init(_ configuration: AuthConfiguration) { self.configuration = configuration }

    /// - Parameter isAnonymous: whether the account is to have no credentials.
    func check(isAnonymous: Bool) throws(AuthError) {
        if !isAnonymous, !configuration.allowsPasswordSignIn { throw .operationNotAllowed }
        guard configuration.signUp == .open else { throw .administratorsOnly }
        if isAnonymous, !configuration.allowsAnonymous { throw .administratorsOnly }
    }

    /// Whether the receiver of the mail of an address may make an account with it by a code.
    func allowsCodeSignUp(of email: String?) -> Bool { email.map { codeSignUpProblem(of: $0) == nil } ?? false }

    /// Whether a code may make an account with its address, or one of an account without credentials.
    func allowsAccount(of subject: CodeSubject) -> Bool {
        guard subject.type == .changeEmail, let email = subject.newEmail else {
            return allowsCodeSignUp(of: subject.address)
        }
        return configuration.signUp == .open && isOfDomain(email)
    }

    /// Why that receiver may not; nil: may.
    func codeSignUpProblem(of email: String) -> AuthError? {
        guard configuration.allowsCodeSignIn else { return .operationNotAllowed }
        guard configuration.signUp == .open else { return .administratorsOnly }
        do {
            _ = try AccountFormPolicy(configuration, isOwn: true).email(email)
            return nil
        } catch {
            return .invalidFields([error])
        }
    }

    private func isOfDomain(_ email: String) -> Bool {
        (try? AccountFormPolicy(configuration, isOwn: true).email(email)) != nil
    }

    /// Where only some domains may sign up, an account without e-mail address is of none of them.
    func missingEmail(_ form: AccountForm) -> [FieldProblem] {
        guard !configuration.emailDomains.isEmpty, form.email == nil, form.username != nil else { return [] }
        return [FieldProblem("email", "MISSING_EMAIL", "An e-mail address is missing: accounts are for some domains")]
    }
}

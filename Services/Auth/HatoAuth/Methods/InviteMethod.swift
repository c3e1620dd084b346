import HatoModel
import HatoRPC
import HatoStorage

/// `auth.users.invite`: an account whose owner sets its password by a mail.
struct InviteMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Users.Invite.self, in: &router) { methods, request, _ in try await methods.invite(request) }
    }

    func invite(_ request: Auth.Users.Invite) async throws -> Auth.Users.Invite.Result {
        let locale = request.locale ?? configuration.mailLocale
        try configuration.links.check(request.continueUrl, domains: configuration.continueDomains)
        try MailLocale.check(request.locale)
        let returnsCode = request.returnCode == true
        if !returnsCode, service.mail == nil { throw AuthError.mailNotConfigured }
        let form = AccountForm(email: request.email, displayName: request.displayName)
        let checked = try AccountFormPolicy(configuration).check(
            form, missing: request.uid.flatMap(UserID.problem(with:)).map { [$0] } ?? [])
        let draft = service.newCode(.invite, locale: locale, continueUrl: request.continueUrl)
        let newUID = request.uid ?? environment.newUID()
        let (account, code) = try await service.write { [limits = configuration.limits] rows in
            var queue = try MailQueueChange(limits, in: rows)
            let now = draft.code.createdAt
            let found = try checked.email.flatMap { try AccountRows.find(.email($0), in: rows) }
            if let found {
                let isInvited = found.passwordHash == nil && found.lastLoginAt == nil
                guard isInvited, request.uid == nil || request.uid == found.uid else { throw AuthError.emailExists }
                guard !found.disabled else { throw AuthError.userDisabled }
            }
            let before = try found ?? AccountRows.newAccount(newUID, at: now, in: rows)
            let change = AccountChange(checked, passwordHash: nil)
            let account =
                found == nil ? change.applied(toNew: before, now: now) : change.applied(to: before, now: now)
            try AccountRows.checkNames(of: account, replacing: found, in: rows)
            let invited = CodeSubject.Resolved(to: account.email ?? "", account: account)
            let code = try draft.issue(to: invited, mailed: !returnsCode, &queue, in: rows)
            AccountRows.put(account, replacing: found, in: rows)
            return (account, code)
        }.outcome
        var result = Auth.Users.Invite.Result(uid: account.uid, email: code.to)
        guard returnsCode else {
            service.mail?.wake()
            return result
        }
        let text = service.codeSecrets.text(code)
        result.code = text
        result.link = configuration.links.link(
            .invite, code: text, locale: locale, continueUrl: request.continueUrl)
        return result
    }
}

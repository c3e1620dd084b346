import HatoModel

/// What a link of a mail is for, in Firebase's words.
enum ActionMode: String, Sendable, Hashable, CaseIterable {
    case resetPassword
    case verifyEmail
    case verifyAndChangeEmail
    case recoverEmail
    case signIn

    init(_ type: Auth.CodeType) {
        self =
            switch type {
            case .passwordReset, .invite, .signUp: .resetPassword
            case .verifyEmail: .verifyEmail
            case .changeEmail: .verifyAndChangeEmail
            case .recoverEmail: .recoverEmail
            case .signIn: .signIn
            }
    }
}

/// The pages behind the links of mails (spec auth §6): GET shows what the link is for, POST does it, since scanners of
/// mails open links. The link of an emulator acts on GET (§8).
struct ActionWire: Sendable {
    private let wire: AccountWire

    init(_ wire: AccountWire) { self.wire = wire }

    /// Throws `AuthFault` for another link than those of mails.
    func work(of operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .actionPage: try page()
        case .actionForm: try form()
        default: try emulatorAction()
        }
    }

    private func link(_ parameters: AccountParameters) throws(AuthFault) -> ActionLink {
        guard let link = ActionLink(parameters) else {
            throw .invalidArgument("The link should have a mode and an oobCode.")
        }
        return link
    }

    private func page() throws(AuthFault) -> any AccountWork {
        let link = try link(AccountParameters(wire.request.query))
        guard link.mode == .signIn else { return Immediate(response: ActionPage(link.language).form(link)) }
        return Redirection(link: link)
    }

    private func form() throws(AuthFault) -> any AccountWork {
        guard !wire.request.isBodyTooLong, wire.request.body.count <= wire.context.limits.formBytesMax else {
            throw .invalidArgument("The form is too large.")
        }
        let parameters = AccountParameters(wire.request.body)
        let link = try link(parameters)
        guard link.mode != .signIn else { throw .invalidArgument("Codes for signing in are for the app.") }
        return Application(link: link, newPassword: parameters["newPassword"], domains: nil)
    }

    /// As an emulator: the errors and successes are JSON.
    private func emulatorAction() throws(AuthFault) -> any AccountWork {
        let parameters = AccountParameters(wire.request.query)
        let link = try link(parameters)
        guard link.mode != .signIn else {
            guard let target = link.target else { throw .invalidArgument("The link should have a continueUrl.") }
            return Immediate(response: .redirection(to: target))
        }
        let newPassword = parameters["newPassword"]
        guard link.mode != .resetPassword || newPassword?.isEmpty == false else {
            throw .invalidArgument("The link should have a newPassword.")
        }
        let continueUrl = link.continueUrl
        var request = Auth.Code.Apply(code: link.code)
        if link.mode == .resetPassword { request.newPassword = newPassword }
        return OneCall(request) { (found) throws(AuthFault) in
            if let continueUrl { return .redirection(to: continueUrl) }
            return AccountResponse([
                "authEmulator": .object(
                    JSONObject(present: [
                        "success": "The code has been applied.", "email": .text(found.email),
                        "newEmail": .text(found.newEmail),
                    ]))
            ])
        }
    }
}

/// A link of a mail.
struct ActionLink: Sendable, Hashable, SecretHolder {
    let mode: ActionMode
    let code: String
    let language: String?
    /// Where the page goes on; only what browsers load over HTTP.
    let continueUrl: String?
    private let parameters: AccountParameters

    /// Nil without mode or code.
    init?(_ parameters: AccountParameters) {
        guard let mode = parameters["mode"].flatMap(ActionMode.init(rawValue:)), let code = parameters["oobCode"],
            !code.isEmpty
        else { return nil }
        self.mode = mode
        self.code = code
        language = parameters["lang"]
        continueUrl = parameters["continueUrl"].flatMap { AccountText.isWebPage($0) ? $0 : nil }
        self.parameters = parameters
    }

    /// `continueUrl` with all other parameters of the link: the app signs in with them.
    var target: String? {
        guard let continueUrl else { return nil }
        let parts = continueUrl.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let query = parameters.list.filter { $0.name != "continueUrl" }
            .map { "\(AccountPercentCoding.encoded($0.name))=\(AccountPercentCoding.encoded($0.value))" }
            .joined(separator: "&")
        let fragment = parts.count > 1 ? "#\(parts[1])" : ""
        return "\(parts[0])\(parts[0].contains("?") ? "&" : "?")\(query)\(fragment)"
    }

    var description: String { "ActionLink(\(mode.rawValue))" }
}

/// Sends the browser to the app with a code for signing in, if the app's domain is one of the project's: else any page
/// could look like one of this site.
private struct Redirection: AccountWork {
    let link: ActionLink

    mutating func begin() throws(AuthFault) -> AccountExchange.Step { .call(NativeCall(Auth.Settings.Get())) }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        let domains = try result.result(of: Auth.Settings.Get.self).continueDomains
        guard let target = link.target, AccountText.host(of: target).map(domains.contains) == true else {
            return .respond(ActionPage(link.language).message(.unknownApp, status: 400))
        }
        return .respond(.redirection(to: target))
    }
}

/// Applies the code of a form that was sent, then shows a page or goes on to the app.
private struct Application: AccountWork, SecretHolder {
    let link: ActionLink
    let newPassword: String?
    /// Nil until the settings were read.
    var domains: [String]?

    var description: String { "Application" }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step {
        guard link.mode != .resetPassword || newPassword?.isEmpty == false else {
            return .respond(ActionPage(link.language).form(link, .missingPassword))
        }
        return .call(NativeCall(Auth.Settings.Get()))
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        guard let domains else {
            domains = try result.result(of: Auth.Settings.Get.self).continueDomains
            var request = Auth.Code.Apply(code: link.code)
            if link.mode == .resetPassword { request.newPassword = newPassword }
            return .call(NativeCall(request))
        }
        if let target = link.continueUrl, AccountText.host(of: target).map(domains.contains) == true {
            return .respond(.redirection(to: target))
        }
        return .respond(ActionPage(link.language).message(.done, status: 200))
    }

    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        let page = ActionPage(link.language)
        switch error.reason {
        case "WEAK_PASSWORD": return .respond(page.form(link, .weakPassword))
        case _ where error.code == .unavailable || error.code == .internalError || error.code == .resourceExhausted:
            return nil
        default: return .respond(page.message(.refused, status: 400))
        }
    }
}

import HatoIdentity
import HatoModel

/// The requested attributes of an account, as typed; nil leaves a field unchanged.
struct AccountForm: Sendable {
    var email: String?
    var username: String?
    var password: String?
    var displayName: String?
    var photoUrl: String?
    var phoneNumber: String?
    var customAttributes: String?
}

/// Validates a form, and normalises its fields for storage.
struct AccountFormPolicy: Sendable {
    /// A valid form.
    struct Checked: Sendable {
        var email: String?
        var username: String?
        var password: Password?
        var displayName: String?
        var photoUrl: String?
        var phoneNumber: String?
        var customAttributes: String?
    }

    private static let usernameBytesMax = 32
    private static let labelCharactersMax = 100

    /// Those of e-mail addresses in the form; empty: all.
    private let domains: [String]
    private let takesStored: Bool
    private let limits: AuthLimits
    private let passwords: PasswordPolicy

    /// - Parameters:
    ///   - isOwn: whether people fill the form for themselves, who may have e-mail addresses of some domains only.
    ///   - takesStored: whether e-mail addresses are looked up, or come from the export of a service: an earlier
    ///     version has stored some to which no mail can be sent.
    init(_ configuration: AuthConfiguration, isOwn: Bool = false, takesStored: Bool = false) {
        domains = isOwn ? configuration.emailDomains : []
        self.takesStored = takesStored
        limits = configuration.limits
        passwords = PasswordPolicy(configuration)
    }

    /// A valid form. That its e-mail address is taken comes before what is wrong with the other fields, such as
    /// `WEAK_PASSWORD`, and after what is missing and what is wrong with the address (spec auth §3, order of checks).
    ///
    /// - Parameters:
    ///   - before: the account that changes; nil for a new one.
    ///   - requireFree: Throws when another account has the address, which is all that it is given.
    func check(
        _ form: AccountForm, before: AccountRecord?, missing: [FieldProblem],
        requireFree: (Checked) async throws -> Void
    ) async throws -> Checked {
        let names = before?.signInNames ?? []
        do { return try check(form, names: names, missing: missing) } catch {
            var address = Checked()
            address.email = form.email.flatMap { try? email($0, stored: names) }
            if missing.isEmpty, address.email != nil { try await requireFree(address) }
            throw error
        }
    }

    /// Throws `AuthError.invalidFields` with every wrong field, those of `missing` first. `names` are the existing
    /// names of the account.
    func check(
        _ form: AccountForm, names: [String] = [], missing: [FieldProblem] = []
    ) throws(AuthError) -> Checked {
        var checked = Checked()
        var problems = missing
        func take<Value>(_ field: String?, _ rule: (String) throws(FieldProblem) -> Value) -> Value? {
            guard let field else { return nil }
            do {
                return try rule(field)
            } catch {
                problems.append(error)
                return nil
            }
        }
        checked.email = take(form.email) { (text) throws(FieldProblem) in try email(text, stored: names) }
        checked.username = take(form.username, username)
        let allNames = names + [checked.email, checked.username].compactMap { $0 }
        checked.password = take(form.password) { (text) throws(FieldProblem) in try password(text, names: allNames) }
        checked.displayName = take(form.displayName, displayName)
        checked.photoUrl = take(form.photoUrl, photoUrl)
        checked.phoneNumber = take(form.phoneNumber, phoneNumber)
        checked.customAttributes = take(form.customAttributes, customAttributes)
        if !problems.isEmpty { throw .invalidFields(problems) }
        return checked
    }

    /// - Parameter stored: those that the account has, which may stay as they are.
    func email(_ text: String, stored: [String] = []) throws(FieldProblem) -> String {
        guard let email = EmailAddress.normalised(text, bytesMax: limits.emailBytesMax),
            takesStored || stored.contains(email) || EmailAddress.isMailable(email)
        else {
            throw FieldProblem(
                "email", "INVALID_EMAIL", "The e-mail address is not one; write it like masuo@example.com")
        }
        guard domains.isEmpty || domains.contains(where: { email.hasSuffix("@\($0)") }) else {
            throw FieldProblem(
                "email", "UNAUTHORIZED_DOMAIN",
                "The e-mail address should be of \(domains.prefix(10).joined(separator: ", "))")
        }
        return email
    }

    func username(_ text: String) throws(FieldProblem) -> String {
        // Megabytes must not be folded: no character folds to less than a fourth of its bytes.
        let folded = text.utf8.count <= 4 * Self.usernameBytesMax ? text.lowercased() : ""
        let isAllowed = folded.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "_"), UInt8(ascii: "."): true
            default: false
            }
        }
        guard isAllowed, (3...Self.usernameBytesMax).contains(folded.utf8.count) else {
            throw FieldProblem(
                "username", "INVALID_USERNAME",
                "The username should have 3 to 32 of a-z, 0-9, _ and ., such as masuo.fuguta")
        }
        return folded
    }

    /// The new password of a code. Throws `AuthError.invalidFields`.
    func newPassword(_ text: String, names: [String]) throws(AuthError) -> Password {
        do { return try password(text, names: names) } catch {
            throw .invalidFields([FieldProblem("newPassword", error.reason, error.message)])
        }
    }

    private func password(_ text: String, names: [String]) throws(FieldProblem) -> Password {
        // Measured as typed first: megabytes must not be normalised.
        guard text.utf8.count <= limits.passwordBytesMax else {
            throw FieldProblem(
                "password", "WEAK_PASSWORD", "Password should have at most \(limits.passwordBytesMax) bytes")
        }
        let password = Password(text)
        if let problem = passwords.problem(with: password, names: names) { throw problem }
        return password
    }

    private func displayName(_ text: String) throws(FieldProblem) -> String {
        guard Self.hasAtMost(limits.displayNameCharactersMax, text) else {
            throw FieldProblem(
                "displayName", "INVALID_DISPLAY_NAME",
                "The name should have at most \(limits.displayNameCharactersMax) characters")
        }
        guard text.unicodeScalars.contains(where: { !$0.properties.isWhitespace }) else {
            throw FieldProblem("displayName", "INVALID_DISPLAY_NAME", "The name should not be blank")
        }
        guard !text.unicodeScalars.contains(where: Self.isInvisibleTrick) else {
            throw FieldProblem(
                "displayName", "INVALID_DISPLAY_NAME", "The name should not have control characters or line breaks")
        }
        return Self.trimmed(text)
    }

    /// The name of a device. Throws `AuthError.invalidFields`.
    func label(_ text: String?) throws(AuthError) -> String? {
        if let problem = labelProblem(text) { throw .invalidFields([problem]) }
        return text.map(Self.trimmed)
    }

    /// Why a label is none; nil: it is one, or absent.
    func labelProblem(_ text: String?) -> FieldProblem? {
        guard let text else { return nil }
        let isLabel =
            Self.hasAtMost(Self.labelCharactersMax, text) && !Self.trimmed(text).isEmpty
            && !text.unicodeScalars.contains(where: Self.isInvisibleTrick)
        guard !isLabel else { return nil }
        return FieldProblem(
            "label", "INVALID_LABEL",
            "The label should have 1 to \(Self.labelCharactersMax) characters without control characters, "
                + "such as マスオさんのiPhone")
    }

    private static func trimmed(_ text: String) -> String {
        var rest = text[...]
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }

    /// Control characters, and those that change the direction of text: a name must not look like another text.
    private static func isInvisibleTrick(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x202A...0x202E, 0x2066...0x2069, 0x2028, 0x2029: true
        default: scalar.properties.generalCategory == .control
        }
    }

    /// Any text: apps also keep paths of their own pictures there. `ProfileEffects` publishes `https://` only.
    private func photoUrl(_ text: String) throws(FieldProblem) -> String {
        guard (1...limits.photoUrlBytesMax).contains(text.utf8.count),
            !text.unicodeScalars.contains(where: Self.isInvisibleTrick)
        else {
            throw FieldProblem(
                "photoUrl", "INVALID_PHOTO_URL",
                "The photo's address should have 1 to \(limits.photoUrlBytesMax) bytes without control "
                    + "characters, such as https://example.com/masuo.png")
        }
        return text
    }

    /// A number of E.164: a plus sign, and 2 to 15 digits of which the first is not zero.
    func phoneNumber(_ text: String) throws(FieldProblem) -> String {
        let digits = text.utf8.dropFirst()
        guard text.utf8.first == UInt8(ascii: "+"), (2...15).contains(digits.count), digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else {
            throw FieldProblem(
                "phoneNumber", "INVALID_PHONE_NUMBER",
                "Invalid format. The phone number should be of E.164, such as +819012345678")
        }
        return text
    }

    /// Whether the text has at most this many characters (Unicode scalars); counted only where its bytes allow it.
    private static func hasAtMost(_ charactersMax: Int, _ text: String) -> Bool {
        text.utf8.count <= 4 * charactersMax && text.unicodeScalars.count <= charactersMax
    }

    private func customAttributes(_ text: String) throws(FieldProblem) -> String {
        guard Self.hasAtMost(limits.customAttributesCharactersMax, text) else {
            throw FieldProblem(
                "customAttributes", "CLAIMS_TOO_LARGE",
                "The claims should have at most \(limits.customAttributesCharactersMax) characters")
        }
        // Deeper ones would make every token of the user unreadable.
        guard case .object(let claims)? = try? JSONParser.parse(text, depth: TokenVerifier.claimsDepthMax) else {
            throw FieldProblem(
                "customAttributes", "INVALID_CLAIMS",
                #"The claims should be a JSON object as text, such as {"staff":true}, at most "#
                    + "\(TokenVerifier.claimsDepthMax) levels deep")
        }
        if let reserved = claims.members.first(where: { IDTokenClaims.reserved.contains($0.name) }) {
            throw FieldProblem("customAttributes", "FORBIDDEN_CLAIM", "The claim \(reserved.name) is reserved")
        }
        return claims.isEmpty ? "{}" : text
    }
}

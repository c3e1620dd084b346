import HatoModel

/// An account as Firebase writes it (spec auth §2): times as texts, the hash of a password never but in an export.
struct ShownAccount: Sendable {
    /// Stands for a hash that is not shown: `REDACTED` in base64.
    static let redactedHash = "UkVEQUNURUQ="

    let account: Auth.Account

    init(_ account: Auth.Account) { self.account = account }

    /// The redacted hash, where the account has a password: clients ask for it.
    var passwordHash: String? { account.passwordUpdatedAt == nil ? nil : Self.redactedHash }

    /// When it last got tokens: a sign-in counts for Firebase, too.
    private var lastTokensAt: Int64? { [account.lastRefreshAt, account.lastLoginAt].compactMap { $0 }.max() }

    var json: JSONValue {
        .object(
            JSONObject(present: [
                "localId": .string(account.uid), "email": .text(account.email),
                "emailVerified": .bool(account.emailVerified), "displayName": .text(account.displayName),
                "photoUrl": .text(account.photoUrl), "phoneNumber": .text(account.phoneNumber),
                "passwordHash": .text(passwordHash),
                "passwordUpdatedAt": account.passwordUpdatedAt.map { .number(Double($0)) },
                "providerUserInfo": Self.providers(account.providerUserInfo),
                "validSince": .int64(account.validSince), "disabled": .bool(account.disabled),
                "lastLoginAt": .int64(account.lastLoginAt), "createdAt": .int64(account.createdAt),
                "lastRefreshAt": .text(lastTokensAt.map(Self.rfc3339)),
                "customAttributes": .text(account.customAttributes), "initialEmail": .text(account.initialEmail),
                "emailLinkSignin": .flag(account.emailLinkSignin), "customAuth": .flag(account.customAuth),
            ]))
    }

    /// Nil for none: an anonymous account has no such member.
    static func providers(_ entries: [Auth.Account.Provider]) -> JSONValue? {
        guard !entries.isEmpty else { return Optional.none }
        return .array(entries.map(provider))
    }

    private static func provider(_ entry: Auth.Account.Provider) -> JSONValue {
        let isPhone = entry.providerId == "phone"
        return .object(
            JSONObject(present: [
                "providerId": .string(entry.providerId), "rawId": .string(entry.rawId),
                "federatedId": isPhone ? Optional.none : .string(federatedId(entry.providerId, entry.rawId)),
                "email": .text(entry.email), "displayName": .text(entry.displayName), "photoUrl": .text(entry.photoUrl),
                "phoneNumber": isPhone ? .string(entry.rawId) : Optional.none,
            ]))
    }

    /// Google's ids are URLs in Firebase.
    static func federatedId(_ provider: String, _ rawId: String) -> String {
        provider == "google.com" ? "https://accounts.google.com/\(rawId)" : rawId
    }

    /// RFC 3339 in UTC with milliseconds.
    ///
    /// - Parameter milliseconds: since 1970; times before are 1970, times after the year 9999 are its end.
    static func rfc3339(_ milliseconds: Int64) -> String {
        let milliseconds = min(max(0, milliseconds), 253_402_300_799_999)
        let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        // Days since 1 March of the year 0: leap days are the last of a year that begins in March.
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let calendarMonth = month < 10 ? month + 3 : month - 9
        let year = yearOfEra + era * 400 + (calendarMonth <= 2 ? 1 : 0)
        let date = "\(padded(year, 4))-\(padded(calendarMonth, 2))-\(padded(day, 2))"
        let time =
            "\(padded(rest / 3_600_000, 2)):\(padded(rest / 60_000 % 60, 2)):\(padded(rest / 1000 % 60, 2))"
        return "\(date)T\(time).\(padded(rest % 1000, 3))Z"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Auth.Users.Row {
    /// The row of an export as Firebase writes it. The hash is the text with all parameters in base64: an import takes
    /// it again without a `hashAlgorithm`.
    var exported: JSONValue {
        .object(
            JSONObject(present: [
                "localId": .text(uid), "email": .text(email), "emailVerified": .flag(emailVerified ?? false),
                "displayName": .text(displayName), "photoUrl": .text(photoUrl), "phoneNumber": .text(phoneNumber),
                "passwordHash": .text(passwordHash.map { Self.padded($0) }),
                "salt": .text(passwordHash.map { Self.padded(Self.salt(of: $0)) }),
                "passwordUpdatedAt": passwordUpdatedAt.map { .number(Double($0)) },
                "providerUserInfo": ShownAccount.providers(providerUserInfo ?? []),
                "disabled": .flag(disabled ?? false),
                "lastLoginAt": .int64(lastLoginAt), "createdAt": .int64(createdAt),
                "customAttributes": .text(customAttributes), "initialEmail": .text(initialEmail),
                "emailLinkSignin": .flag(emailLinkSignin), "customAuth": .flag(customAuth),
            ]))
    }

    /// The part before the last of `$scheme$parameters$salt$hash`; the whole of another text.
    private static func salt(of hash: String) -> String {
        let parts = hash.split(separator: "$")
        return parts.count >= 3 ? String(parts[parts.count - 2]) : hash
    }

    private static func padded(_ text: String) -> String {
        let encoded = Base64.standard.encode(text.utf8)
        return encoded + String(repeating: "=", count: (4 - encoded.utf8.count % 4) % 4)
    }
}

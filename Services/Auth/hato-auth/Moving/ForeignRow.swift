import HatoModel

/// An account as other software writes it, turned into a row of `auth.users.import`: Firebase (`auth:export`), GoTrue
/// (`auth.users`), PocketBase (`users`), Hato itself.
struct ForeignRow {
    var row: Auth.Users.Row
    /// What of it has no place here, e.g. `google.com` without an id at the provider.
    var lost: Set<String> = []

    /// A member of another kind than expected.
    struct Problem: Error, Hashable {
        var message: String
    }

    /// Throws `Problem` for a member that cannot be read.
    ///
    /// - Parameter now: milliseconds since 1970, for bans that have an end.
    init(_ object: JSONObject, now: Int64) throws(Problem) {
        let reader = Reader(object: object)
        row = Auth.Users.Row(uid: try reader.text("uid", "localId", "id"))
        row.email = try reader.text("email")
        row.emailVerified = try reader.flag("emailVerified", "verified") ?? reader.isPresent("email_confirmed_at")
        row.username = try reader.text("username")
        let metadata = Reader(object: object["raw_user_meta_data"]?.object ?? [:])
        let displayName = try metadata.text("display_name", "full_name", "name")
        row.displayName = try reader.text("displayName", "name") ?? displayName
        let photoUrl = try metadata.text("avatar_url")
        row.photoUrl = try reader.text("photoUrl") ?? photoUrl
        let isDisabled = try reader.flag("disabled")
        let banEnd = try reader.time("banned_until")
        row.disabled = isDisabled ?? banEnd.map { $0 > now }
        row.customAttributes = try reader.text("customAttributes")
        row.createdAt = try reader.time("createdAt", "created_at", "created")
        row.lastLoginAt = try reader.time("lastLoginAt", "lastSignedInAt", "last_sign_in_at")
        row.passwordUpdatedAt = try reader.time("passwordUpdatedAt")
        row.initialEmail = try reader.text("initialEmail")
        row.emailLinkSignin = try reader.flag("emailLinkSignin")
        row.customAuth = try reader.flag("customAuth")
        row.passwordHash = try reader.text("passwordHash", "encrypted_password") ?? reader.hash("password")
        row.salt = try reader.text("salt")
        let phone = try reader.text("phone").map { Self.phoneNumber($0) }
        row.phoneNumber = try reader.text("phoneNumber") ?? phone
        row.providerUserInfo = object["providerUserInfo"]?.array.map { providers in
            providers.compactMap { identity($0) }
        }
    }

    private mutating func identity(_ provider: JSONValue) -> Auth.Account.Provider? {
        guard let id = provider["providerId"]?.string, id != "password", id != "phone" else { return nil }
        guard let rawId = provider["rawId"]?.string, !rawId.isEmpty else {
            lost.insert(id)
            return nil
        }
        var identity = Auth.Account.Provider(providerId: id, rawId: rawId)
        identity.email = provider["email"]?.string
        identity.displayName = provider["displayName"]?.string
        identity.photoUrl = provider["photoUrl"]?.string
        return identity
    }

    /// GoTrue writes numbers without the plus sign.
    private static func phoneNumber(_ text: String) -> String {
        text.utf8.first.map { (UInt8(ascii: "1")...UInt8(ascii: "9")).contains($0) } == true ? "+\(text)" : text
    }

    /// The members of a row by any of their names.
    private struct Reader {
        var object: JSONObject

        private func first(_ names: [String]) -> (name: String, value: JSONValue)? {
            for name in names {
                if let value = object[name], value != .null, value != "" { return (name, value) }
            }
            return nil
        }

        func isPresent(_ name: String) -> Bool? { first([name]).map { _ in true } }

        func text(_ names: String...) throws(Problem) -> String? {
            guard let (name, value) = first(names) else { return nil }
            guard let text = value.string else { throw Problem(message: "\(name) should be a text") }
            return text
        }

        /// A text that is a hash; PocketBase's `password` is one.
        func hash(_ name: String) -> String? {
            guard let text = object[name]?.string, text.hasPrefix("$") else { return nil }
            return text
        }

        func flag(_ names: String...) throws(Problem) -> Bool? {
            guard let (name, value) = first(names) else { return nil }
            guard case .bool(let flag) = value else { throw Problem(message: "\(name) should be true or false") }
            return flag
        }

        /// Milliseconds since 1970, as a number or as text, or a time such as `2026-11-21 10:00:00.123Z`.
        func time(_ names: String...) throws(Problem) -> Int64? {
            guard let (name, value) = first(names) else { return nil }
            if let number = value.number, let milliseconds = Int64(exactly: number.rounded(.down)) {
                return milliseconds
            }
            if let text = value.string, let milliseconds = Int64(text) ?? TimeText.milliseconds(text) {
                return milliseconds
            }
            throw Problem(message: "\(name) should be in milliseconds since 1970, or like 2026-11-21T10:00:00Z")
        }
    }
}

/// Reads times as databases print them (RFC 3339, with a space in place of the T).
enum TimeText {
    /// Milliseconds since 1970; nil for another text. Without an offset it is UTC.
    static func milliseconds(_ text: String) -> Int64? {
        let form = /(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\s?(Z|[+\-]\d\d(?::?\d\d)?)?/
        guard let match = text.wholeMatch(of: form), let year = Int64(match.1), let month = Int64(match.2),
            let day = Int64(match.3), let hour = Int64(match.4), let minute = Int64(match.5),
            let second = Int64(match.6),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        let fraction = ((match.7.map(String.init) ?? "") + "000").prefix(3)
        let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset(match.8)
        return seconds * 1000 + (Int64(fraction) ?? 0)
    }

    /// Days since 1970-01-01 in the Gregorian calendar.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // The year begins in March, so that a leap day is its last.
        let year = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }

    private static func offset(_ text: Substring?) -> Int64 {
        guard let text, text != "Z" else { return 0 }
        let digits = text.filter(\.isNumber)
        let seconds = (Int64(digits.prefix(2)) ?? 0) * 3600 + (Int64(digits.dropFirst(2)) ?? 0) * 60
        return text.hasPrefix("-") ? -seconds : seconds
    }
}

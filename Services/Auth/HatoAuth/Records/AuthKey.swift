import HatoModel
import HatoStorage

/// The keys of auth's records in its store. The first letter is the kind; the rest is unique within it.
///
/// | key | value |
/// |---|---|
/// | `a` uid | account |
/// | `e` e-mail | uid |
/// | `n` username | uid |
/// | `s` session id | session |
/// | `u` uid, 0, session id | nothing: the sessions of a user |
/// | `d` uid | former account: what stays of a deleted one for a day |
/// | `l` provider, 0, id at the provider | uid: the identities of accounts |
/// | `i` id | provider |
/// | `v` id of a removed provider | issuer of the identities that accounts still have of it |
/// | `p` time of expiry in s, 8 bytes, SHA-256 | nothing: the ID tokens of providers that have signed in |
/// | `k` kid | signing key |
/// | `c` code id | code |
/// | `b` address, 0, type | code id: the newest code of the type; of `changeEmail` with 0, uid at the end |
/// | `o` uid, 0, address | code id: what brings this address of the account back |
/// | `q` phone number | uid |
/// | `f` 1 for all networks, else 0, mark of account and network | wrong passwords |
/// | `m` mail id | mail |
/// | `w` 0 or 1, time in ms, 8 bytes, mail id | nothing: when a mail is sent next; 0: to an account |
/// | `g` mail id | nothing: the dead mails |
/// | `y` e-mail | service account whose custom tokens are taken |
/// | `j` time in ms, 8 bytes, version, 8 bytes, number, 2 bytes | audit entry |
/// | `h` uid, 0, the same | nothing: the audit entries of an account |
/// | `t` time in ms, 8 bytes | version: the store had it at that time |
/// | `x` name | metadata of the service |
enum AuthKey {
    static let accounts = KeyRange(prefix: [UInt8(ascii: "a")])
    static let sessions = KeyRange(prefix: [UInt8(ascii: "s")])
    static let sessionsOfUsers = KeyRange(prefix: [UInt8(ascii: "u")])
    static let formerAccounts = KeyRange(prefix: [UInt8(ascii: "d")])
    static let signingKeys = KeyRange(prefix: [UInt8(ascii: "k")])
    static let providers = KeyRange(prefix: [UInt8(ascii: "i")])
    static let codes = KeyRange(prefix: [UInt8(ascii: "c")])
    static let codesOfAddresses = KeyRange(prefix: [UInt8(ascii: "b")])
    static let recoveries = KeyRange(prefix: [UInt8(ascii: "o")])
    static let mails = KeyRange(prefix: [UInt8(ascii: "m")])
    /// Of mails to accounts, and of all others.
    static let mailsBySendTime = [KeyRange(prefix: [UInt8(ascii: "w"), 0]), KeyRange(prefix: [UInt8(ascii: "w"), 1])]
    static let deadMails = KeyRange(prefix: [UInt8(ascii: "g")])
    static let signers = KeyRange(prefix: [UInt8(ascii: "y")])
    static let failures = KeyRange(prefix: [UInt8(ascii: "f")])
    static let audits = KeyRange(prefix: [UInt8(ascii: "j")])
    /// The entries, and those of accounts.
    static let auditRanges = [audits, KeyRange(prefix: [UInt8(ascii: "h")])]
    static let eventMarks = KeyRange(prefix: [UInt8(ascii: "t")])
    static let format = key("x", "format".utf8)
    static let settings = key("x", "settings".utf8)
    static let refreshSecret = key("x", "refresh-secret".utf8)
    static let longestLifetime = key("x", "longest-lifetime".utf8)
    static let pepperIDs = key("x", "pepper-ids".utf8)
    static let newestEvent = key("x", "newest-event".utf8)
    static let mailFigures = key("x", "mail-figures".utf8)
    static let figures = key("x", "figures".utf8)
    static let providerTokensSince = key("x", "provider-tokens-since".utf8)
    static let usedTokenCount = key("x", "used-provider-tokens".utf8)

    /// What is written where there is no code to write.
    static func noCode(_ index: Int) -> [UInt8] { key("x", "no-code-\(index)".utf8) }

    static func account(_ uid: String) -> [UInt8] { key("a", uid.utf8) }
    static func formerAccount(_ uid: String) -> [UInt8] { key("d", uid.utf8) }
    static func email(_ email: String) -> [UInt8] { key("e", email.utf8) }
    static func username(_ username: String) -> [UInt8] { key("n", username.utf8) }
    static func phoneNumber(_ number: String) -> [UInt8] { key("q", number.utf8) }
    static func session(_ id: [UInt8]) -> [UInt8] { key("s", id) }
    static func failure(_ failure: FailureKey) -> [UInt8] { key("f", failure.bytes) }
    static func signingKey(_ kid: String) -> [UInt8] { key("k", kid.utf8) }
    static func provider(_ id: String) -> [UInt8] { key("i", id.utf8) }
    static func formerIssuer(_ id: String) -> [UInt8] { key("v", id.utf8) }
    /// The id of a provider contains no NUL.
    static func identities(of provider: String) -> KeyRange { KeyRange(prefix: key("l", provider.utf8) + [0]) }
    static func identity(_ provider: String, _ uid: String) -> [UInt8] {
        identities(of: provider).lower + Array(uid.utf8)
    }

    /// - Parameter expiresAt: seconds since 1970.
    static func usedToken(_ hash: [UInt8], expiresAt: Int64) -> [UInt8] {
        key("p", UInt64(max(0, expiresAt)).bigEndianBytes + hash)
    }

    /// Those that expire before a time, in seconds since 1970.
    static func usedTokens(until time: Int64) -> KeyRange {
        KeyRange(lower: key("p", []), upper: key("p", UInt64(max(0, time)).bigEndianBytes))
    }

    static func code(_ id: [UInt8]) -> [UInt8] { key("c", id) }

    /// The row by which the newest code of a type is found. An address and a uid contain no NUL.
    ///
    /// - Parameter uid: of the account; counts only where codes of several accounts for one address are kept.
    static func code(_ type: Auth.CodeType, to address: String, of uid: String?) -> [UInt8] {
        switch type {
        case .recoverEmail: key("o", (uid ?? "").utf8) + [0] + Array(address.utf8)
        case .changeEmail: codes(type, to: address).lower + Array((uid ?? "").utf8)
        case .verifyEmail, .passwordReset, .signIn, .invite, .signUp:
            key("b", address.utf8) + [0] + Array(type.rawValue.utf8)
        }
    }

    /// The codes of a type for an address, of any account.
    static func codes(_ type: Auth.CodeType, to address: String) -> KeyRange {
        KeyRange(prefix: key("b", address.utf8) + [0] + Array(type.rawValue.utf8) + [0])
    }

    static func recoveries(of uid: String) -> KeyRange { KeyRange(prefix: key("o", uid.utf8) + [0]) }

    static func mail(_ id: [UInt8]) -> [UInt8] { key("m", id) }

    /// The row by which a mail is found: by its time while it waits, among the dead ones otherwise.
    static func mailIndex(_ mail: MailRecord) -> [UInt8] {
        guard let nextAt = mail.nextAt else { return key("g", mail.id) }
        return key("w", [mail.hasAccount ? 0 : 1] + UInt64(max(0, nextAt)).bigEndianBytes) + mail.id
    }

    static func mails(after id: [UInt8]?) -> KeyRange {
        id.map { KeyRange(lower: key("m", $0) + [0], upper: mails.upper) } ?? mails
    }

    static func deadMails(after id: [UInt8]?) -> KeyRange {
        id.map { KeyRange(lower: key("g", $0) + [0], upper: deadMails.upper) } ?? deadMails
    }

    static func signer(_ email: String) -> [UInt8] { key("y", email.utf8) }
    static func signers(after email: String?) -> KeyRange {
        email.map { KeyRange(lower: signer($0) + [0], upper: signers.upper) } ?? signers
    }

    static func audit(_ id: [UInt8]) -> [UInt8] { key("j", id) }
    static func audit(_ id: [UInt8], of uid: String) -> [UInt8] { audits(of: uid).lower + id }
    static func audits(of uid: String) -> KeyRange { KeyRange(prefix: key("h", uid.utf8) + [0]) }

    static func eventMark(_ time: Int64) -> [UInt8] { key("t", UInt64(max(0, time)).bigEndianBytes) }

    /// A uid contains no NUL, so the sessions of two users are never mixed.
    static func sessions(of uid: String) -> KeyRange { KeyRange(prefix: key("u", uid.utf8) + [0]) }
    static func session(_ id: [UInt8], of uid: String) -> [UInt8] { key("u", uid.utf8) + [0] + id }

    /// The accounts after `uid` in the order of the store.
    static func accounts(after uid: String) -> KeyRange {
        KeyRange(lower: account(uid) + [0], upper: accounts.upper)
    }

    private static func key(_ kind: Character, _ rest: some Sequence<UInt8>) -> [UInt8] { Array(kind.utf8) + rest }
}

extension StoreReading {
    func row(_ key: [UInt8]) throws -> [UInt8]? { try get(key.span) }

    /// Visits rows in the order of their keys until `visit` returns false.
    func rows(_ range: KeyRange, _ visit: (_ key: [UInt8], _ value: [UInt8]) throws -> Bool) throws {
        try scan(range, reverse: false) { key, value in
            let isMoreWanted = try visit(Array(copying: key), Array(copying: value))
            return isMoreWanted ? .next : .stop
        }
    }
}

extension StoreWriting {
    func putRow(_ key: [UInt8], _ value: [UInt8]) { put(key.span, value.span) }
    func deleteRow(_ key: [UInt8]) { delete(key.span) }
}

extension Array where Element == UInt8 {
    init(copying span: Span<UInt8>) {
        self.init(capacity: span.count) { output in
            for index in span.indices { output.append(span[index]) }
        }
    }
}

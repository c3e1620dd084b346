import HatoModel
import HatoRPC

/// Why an effect will not be done.
struct EffectRefusal: Error, Sendable, Hashable {
    var reason: String
}

/// The users as auth has them now, each remembered for a minute.
actor CurrentAccounts {
    private struct Entry {
        var user: Caller.User
        var until: Int64
    }

    private let auth: RPCClient
    private let now: @Sendable () -> Int64
    private var known: [String: Entry] = [:]

    private static let kept: Int64 = 60_000
    private static let knownMax = 4_096

    /// - Parameter auth: with a service key for `auth.users.get`.
    init(_ auth: RPCClient, now: @escaping @Sendable () -> Int64) {
        self.auth = auth
        self.now = now
    }

    /// The user with the claims of an ID token that auth would make now, except those of a session. Throws
    /// `EffectRefusal` for a user that is disabled or deleted, and `RPCError`.
    func user(_ uid: String) async throws -> Caller.User {
        if let entry = known[uid], entry.until > now() { return entry.user }
        let account: Auth.Account
        do { account = try await auth.call(Auth.Users.Get(uid: uid)) } catch let error as RPCError
            where error.reason == "USER_NOT_FOUND"
        {
            throw EffectRefusal(reason: "user_not_found")
        }
        guard !account.disabled else {
            known[uid] = nil
            throw EffectRefusal(reason: "user_disabled")
        }
        let user = Caller.User(uid: uid, claims: account.claims)
        if known.count >= Self.knownMax { known = known.filter { $0.value.until > now() } }
        if known.count >= Self.knownMax { known = [:] }
        known[uid] = Entry(user: user, until: now() + Self.kept)
        return user
    }
}

extension Auth.Account {
    /// Claims that custom attributes may not have.
    private static let reserved: Set<String> = [
        "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti",
        "nbf", "nonce", "sid", "sub",
    ]

    /// The claims of its ID tokens that do not depend on a session.
    fileprivate var claims: JSONObject {
        var claims: JSONObject = [:]
        claims["name"] = displayName.map { .string($0) }
        claims["picture"] = photoUrl.map { .string($0) }
        if let text = customAttributes, let custom = (try? JSONParser.parse(Array(text.utf8)))?.object {
            for member in custom.members where !Self.reserved.contains(member.name) {
                claims[member.name] = member.value
            }
        }
        claims["user_id"] = .string(uid)
        claims["sub"] = .string(uid)
        claims["email"] = email.map { .string($0) }
        claims["email_verified"] = email.map { _ in .bool(emailVerified) }
        claims["phone_number"] = phoneNumber.map { .string($0) }
        var identities: JSONObject = email.map { ["email": .array([.string($0)])] } ?? [:]
        if let phoneNumber { identities["phone"] = .array([.string(phoneNumber)]) }
        for provider in providerUserInfo where provider.providerId != "password" && provider.providerId != "phone" {
            identities[provider.providerId] = .array([.string(provider.rawId)])
        }
        var firebase: JSONObject = ["identities": .object(identities)]
        if let provider = onlyProvider {
            firebase["sign_in_provider"] = .string(provider)
            if provider == Self.anonymous { claims["provider_id"] = .string(provider) }
        }
        claims["firebase"] = .object(firebase)
        return claims
    }

    private static let anonymous = "anonymous"

    /// The one way in which the user can have signed in; nil when there are several.
    private var onlyProvider: String? {
        let others = (emailLinkSignin == true ? ["emailLink"] : []) + (customAuth == true ? ["custom"] : [])
        let ways = providerUserInfo.map(\.providerId) + others
        return ways.isEmpty ? Self.anonymous : ways.count == 1 ? ways.first : nil
    }
}

import HatoModel
import HatoRPC
import Synchronization

/// Why an effect will not be done.
struct EffectRefusal: Error, Sendable, Hashable {
    var reason: String
}

/// The users as auth has them now, each remembered for a minute, and not longer than until auth says that it changed.
final class CurrentAccounts: Sendable {
    private struct Entry {
        var user: Caller.User
        var until: Int64
    }

    private struct State {
        var known: [String: Entry] = [:]
        /// How often something was forgotten: what was asked before is not kept after it.
        var changes = 0
    }

    private let auth: RPCClient
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    private static let kept: Int64 = 60_000
    private static let knownMax = 4_096

    /// - Parameter auth: how to reach auth, with a service key for `auth.users.get`.
    init(_ auth: RPCClientConfiguration, now: @escaping @Sendable () -> Int64) {
        self.auth = RPCClient(auth)
        self.now = now
    }

    /// The accounts of these users changed; nil: maybe all did.
    func forget(_ uids: Set<String>?) {
        state.withLock { state in
            state.changes += 1
            if let uids { for uid in uids { state.known[uid] = nil } } else { state.known = [:] }
        }
    }

    /// Ends the calls that are under way.
    func close() async { await auth.close() }

    /// The user with the claims of an ID token that auth would make now, except those of a session. Throws
    /// `EffectRefusal` for a user that is disabled or deleted, and `RPCError`.
    func user(_ uid: String) async throws -> Caller.User {
        let (entry, changes) = state.withLock { ($0.known[uid], $0.changes) }
        if let entry, entry.until > now() { return entry.user }
        let account: Auth.Account
        do { account = try await auth.call(Auth.Users.Get(uid: uid)) } catch let error as RPCError
            where error.reason == "USER_NOT_FOUND"
        {
            throw EffectRefusal(reason: "user_not_found")
        }
        guard !account.disabled else { throw EffectRefusal(reason: "user_disabled") }
        let (user, now) = (Caller.User(uid: uid, claims: account.claims), now())
        state.withLock { state in
            guard state.changes == changes else { return }
            if state.known.count >= Self.knownMax { state.known = state.known.filter { $0.value.until > now } }
            if state.known.count >= Self.knownMax { state.known = [:] }
            state.known[uid] = Entry(user: user, until: now + Self.kept)
        }
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

import CryptoExtras
import HatoIdentity
import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

/// Custom tokens as trusted servers and their users use them.
@Suite(.timeLimit(.minutes(10)))
struct CustomTokenTests {
    @Test func aTokenOfThisServiceSignsInAndMakesTheAccount() async throws {
        let bench = try await AuthBench.open()
        let token = try bench.customToken("masuo-1")
        let first = try await bench.signIn(customToken: token)
        #expect(first.uid == "masuo-1" && first.isNewUser)
        let claims = try await bench.claims(first.idToken)
        #expect(claims["firebase"]?["sign_in_provider"] == "custom")
        #expect(claims["provider_id"] == nil && claims["user_id"] == "masuo-1")
        let account = try await bench.account(first)
        #expect(account.customAuth == true && account.providerUserInfo.isEmpty && account.lastLoginAt == bench.now)
        let second = try await bench.signIn(customToken: token)
        #expect(second.uid == "masuo-1" && !second.isNewUser)
    }

    @Test func aTokenOfARegisteredServiceAccountSignsIn() async throws {
        let bench = try await AuthBench.open()
        let account = try ServiceAccount()
        let claims = ServiceAccount.claims("masuo-1", at: bench.now, ["room": "hq"])
        let early = await wireError { try await bench.signIn(customToken: try account.sign(claims)) }
        #expect(early?.reason == "CREDENTIAL_MISMATCH" && early?.code == .unauthenticated)
        try await bench.register(account)
        for header: JSONObject in [["alg": "RS256", "typ": "JWT", "kid": "x"], ["alg": "RS256"]] {
            let session = try await bench.signIn(customToken: try account.sign(claims, header: header))
            #expect(try await bench.claims(session.idToken)["room"] == "hq")
        }
        _ = try await bench.service.customTokens.removeSigner(
            Auth.CustomToken.Signers.Remove(email: ServiceAccount.email))
        let late = await wireError { try await bench.signIn(customToken: try account.sign(claims)) }
        #expect(late?.reason == "CREDENTIAL_MISMATCH")
    }

    @Test func theSignerSurvivesARestart() async throws {
        let bench = try await AuthBench.open()
        let account = try ServiceAccount()
        try await bench.register(account)
        let restarted = try await AuthBench.open(since: bench)
        let token = try account.sign(ServiceAccount.claims("masuo-1", at: bench.now))
        #expect(try await restarted.signIn(customToken: token).isNewUser)
    }

    @Test func itsClaimsComeBackAfterRefreshForkAndChangesOfTheProfile() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signIn(customToken: try bench.customToken("masuo-1", ["room": "hq"]))
        func room(_ idToken: String) async throws -> JSONValue? { try await bench.claims(idToken)["room"] }
        #expect(try await room(session.idToken) == "hq")
        let refreshed = try await bench.refresh(session.refreshToken)
        #expect(try await room(refreshed.idToken) == "hq")
        let restarted = try await AuthBench.open(since: bench)
        let again = try await restarted.refresh(refreshed.refreshToken)
        #expect(try await room(again.idToken) == "hq")
        let fork = try await bench.service.sessionList.fork(
            Auth.Sessions.Fork(refreshToken: again.refreshToken), CallOrigin())
        #expect(try await room(fork.idToken) == "hq")
        var rename = Auth.Account.Update()
        rename.displayName = "マスオさん"
        let renamed = try await bench.service.accounts.updateAccount(rename, try await bench.origin(again))
        #expect(try await room(renamed.idToken) == "hq")
        #expect(try await bench.claims(renamed.idToken)["firebase"]?["sign_in_provider"] == "custom")
        // Another sign-in has its own, and a new e-mail address ends the session but not what the server said.
        let plain = try await bench.signIn(customToken: try bench.customToken("masuo-1"))
        #expect(try await room(plain.idToken) == nil)
        var change = Auth.Account.Update()
        change.email = "masuo@example.com"
        change.password = AuthBench.password
        let changed = try await bench.service.accounts.updateAccount(change, try await bench.origin(again))
        #expect(try await room(changed.idToken) == "hq")
        bench.pass(seconds: 2)
        #expect(try await room(bench.refresh(try #require(changed.refreshToken)).idToken) == "hq")
        #expect(try await room(bench.signIn().idToken) == nil)
    }

    @Test func itsClaimsGoBeforeThoseOfTheAccountAndBehindStandardOnes() async throws {
        let bench = try await AuthBench.open()
        let owner = try await bench.signUp("masuo@example.com", name: "マスオさん")
        var update = Auth.Users.Update(uid: owner.uid)
        update.customAttributes = #"{"level":1,"staff":true}"#
        _ = try await bench.service.users.updateUser(update)
        let token = try bench.customToken(
            owner.uid, ["level": 2, "name": "サザエ", "email": "sazae@example.com", "user_id": "x", "phone_number": "1"])
        let claims = try await bench.claims(bench.signIn(customToken: token).idToken)
        #expect(claims["level"] == 2 && claims["staff"] == true && claims["name"] == "サザエ")
        #expect(claims["email"] == "masuo@example.com" && claims["user_id"] == .string(owner.uid))
        #expect(claims["phone_number"] == nil && claims["sub"] == .string(owner.uid))
    }

    @Test func itSignsInWhereSignUpIsClosed() async throws {
        let bench = try await AuthBench.open { configuration in
            configuration.signUp = .closed
            configuration.allowsPasswordSignIn = false
            configuration.allowsAnonymous = false
        }
        #expect(try await bench.signIn(customToken: try bench.customToken()).isNewUser)
    }

    @Test func anAnonymousAccountOfItIsNoneAnyMore() async throws {
        let bench = try await AuthBench.open()
        let anonymous = try await bench.anonymous()
        let session = try await bench.signIn(customToken: try bench.customToken(anonymous.uid))
        #expect(session.uid == anonymous.uid && !session.isNewUser)
        #expect(try await bench.claims(session.idToken)["provider_id"] == nil)
    }

    @Test func itsAccountTakesAnAddressAndAPasswordWhileItHasSignedInRecently() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signIn(customToken: try bench.customToken())
        bench.pass(seconds: 301)
        let late = await wireError { try await bench.upgrade(session, "a@example.com") }
        #expect(late?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        let recent = try await bench.signIn(customToken: try bench.customToken())
        let full = try await bench.upgrade(recent, "a@example.com")
        #expect(full.uid == session.uid && !full.isNewUser)
        #expect(try await bench.signIn("a@example.com").uid == session.uid)
        let again = await wireError { try await bench.upgrade(full, "b@example.com") }
        #expect(again?.reason == "PROVIDER_ALREADY_LINKED")
    }

    @Test func aDisabledUserStaysOut() async throws {
        let bench = try await AuthBench.open()
        let token = try bench.customToken()
        let session = try await bench.signIn(customToken: token)
        var update = Auth.Users.Update(uid: session.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        #expect(await wireError { try await bench.signIn(customToken: token) }?.reason == "USER_DISABLED")
    }

    @Test func whatEndsSessionsEndsEarlierTokens() async throws {
        let bench = try await AuthBench.open()
        let stolen = try bench.customToken()
        _ = try await bench.signIn(customToken: stolen)
        bench.pass(seconds: 60)
        _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: "masuo-1"))
        #expect(await wireError { try await bench.signIn(customToken: stolen) }?.reason == "INVALID_CUSTOM_TOKEN")
        let later = try bench.customToken()
        _ = try await bench.signIn(customToken: later)
        bench.pass(seconds: 60)
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: "masuo-1"))
        #expect(await wireError { try await bench.signIn(customToken: later) }?.reason == "INVALID_CUSTOM_TOKEN")
        #expect(try await bench.signIn(customToken: try bench.customToken()).isNewUser)
    }

    /// Whether the token makes the account anew or there is another one with the uid.
    @Test(arguments: [false, true])
    func tokenOfADeletedAccountIsOfNoUseForTheNextOne(isMadeAnew: Bool) async throws {
        let bench = try await AuthBench.open()
        let stolen = try bench.customToken()
        _ = try await bench.signIn(customToken: stolen)
        bench.pass(seconds: 60)
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: "masuo-1"))
        bench.pass(seconds: 60)
        if isMadeAnew {
            var create = Auth.Users.Create()
            create.uid = "masuo-1"
            _ = try await bench.service.users.createUser(create)
        }
        #expect(await wireError { try await bench.signIn(customToken: stolen) }?.reason == "INVALID_CUSTOM_TOKEN")
        #expect(try await bench.signIn(customToken: try bench.customToken()).isNewUser == !isMadeAnew)
    }

    @Test func aServerMayMakeTheTokenBeforeTheAccount() async throws {
        let bench = try await AuthBench.open()
        let token = try bench.customToken("masuo-1")
        bench.pass(seconds: 60)
        var create = Auth.Users.Create()
        create.uid = "masuo-1"
        create.email = "masuo@example.com"
        _ = try await bench.service.users.createUser(create)
        #expect(try await bench.signIn(customToken: token).isNewUser == false)
    }

    @Test func aTokenIsValidAfterARotationAndNotAfterTheEndOfItsKey() async throws {
        let bench = try await AuthBench.open()
        let token = try bench.customToken()
        let kid = bench.service.ring.current.kid
        _ = try await bench.service.keys.rotateKeys()
        bench.pass(seconds: 3_500)
        _ = try await bench.signIn(customToken: token)
        _ = try await bench.service.keys.revokeKey(kid)
        #expect(await wireError { try await bench.signIn(customToken: token) }?.reason == "INVALID_CUSTOM_TOKEN")
    }

    @Test func accountsOfCustomTokensMoveToAnotherService() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signIn(customToken: try bench.customToken())
        let rows = try await MovingMethods(service: bench.service).exportUsers(Auth.Users.Export()).users
        #expect(rows.map(\.customAuth) == [true])
        let other = try await AuthBench.open()
        _ = try await MovingMethods(service: other.service).importUsers(Auth.Users.Import(users: rows))
        let account = try await other.service.users.user(Auth.Users.Get(uid: "masuo-1"))
        #expect(account.customAuth == true)
    }

    // MARK: Signers

    @Test func signersAreListedInPagesReplacedAndRemoved() async throws {
        let bench = try await AuthBench.open { $0.limits.signersMax = 3 }
        let methods = bench.service.customTokens
        let key = try ServiceAccount().publicKey
        for name in ["c", "a", "B"] {
            let signer = try await methods.setSigner(.init(email: "\(name)@example.com", publicKey: key))
            #expect(signer.email == "\(name.lowercased())@example.com" && signer.keyBits == 2048)
        }
        let first = try await methods.signers(.init(limit: 2))
        #expect(first.signers.map(\.email) == ["a@example.com", "b@example.com"] && first.after == "b@example.com")
        let last = try await methods.signers(.init(after: first.after, limit: 2))
        #expect(last.signers.map(\.email) == ["c@example.com"] && last.after == nil)
        let other = try ServiceAccount.other().publicKey
        _ = try await methods.setSigner(.init(email: "a@example.com", publicKey: other))
        #expect(try await methods.signers(.init()).signers.map(\.publicKey) == [other, key, key])
        let more = await wireError { try await methods.setSigner(.init(email: "d@example.com", publicKey: key)) }
        #expect(more?.reason == "too_many_signers")
        _ = try await methods.removeSigner(.init(email: "A@example.com"))
        let gone = await wireError { try await methods.removeSigner(.init(email: "a@example.com")) }
        #expect(gone?.reason == "signer_not_found" && gone?.code == .notFound)
    }

    @Test func theFileOfAServiceAccountGivesItsPublicHalf() throws {
        let account = try ServiceAccount()
        let file: JSONObject = [
            "type": "service_account", "client_email": .string(ServiceAccount.email),
            "private_key": .string(account.key.pemRepresentation), "private_key_id": "1",
        ]
        let read = try ServiceAccountFile(JSONValue.object(file).encoded)
        #expect(read.email == ServiceAccount.email && read.publicKey == account.publicKey)
        for wrong: JSONObject in [[:], ["client_email": "x"], ["client_email": "x", "private_key": "SECRET"]] {
            let problem = #expect(throws: ServiceAccountFile.Problem.self) {
                try ServiceAccountFile(JSONValue.object(wrong).encoded)
            }
            #expect(problem?.description.contains("SECRET") == false)
        }
    }
}

import HatoModel
import HatoStorage
import HatoTesting
import Testing

@testable import HatoAuth

/// `auth.users.…`: what administrators do to accounts.
@Suite(.timeLimit(.minutes(10)))
struct UsersTests {
    @Test func whatIsDoneToAUserThatIsNotThereSaysSo() async throws {
        let bench = try await AuthBench.open()
        var update = Auth.Users.Update(uid: "masuo")
        update.displayName = "マスオさん"
        let updated = await wireError { [update] in _ = try await bench.service.users.updateUser(update) }
        let revoked = await wireError {
            _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: "masuo"))
        }
        for error in [updated, revoked] { #expect(error?.reason == "USER_NOT_FOUND" && error?.code == .notFound) }
    }

    @Test func usersAreFoundByEveryName() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(username: "masuo")
        for request in [
            Auth.Users.Get(uid: session.uid), Auth.Users.Get(email: "MASUO@example.com"),
            Auth.Users.Get(username: "Masuo"),
        ] {
            #expect(try await bench.service.users.user(request).uid == session.uid)
        }
        #expect(
            await wireError { try await bench.service.users.user(Auth.Users.Get(uid: "nobody")) }?.code == .notFound)
        #expect(
            await wireError { try await bench.service.users.user(Auth.Users.Get()) }?.reason == "MISSING_IDENTIFIER")
    }

    @Test func pagesShowEveryUserOnce() async throws {
        let bench = try await AuthBench.open()
        var uids: Set<String> = []
        for _ in 0..<25 { uids.insert(try await bench.anonymous().uid) }
        var seen: [String] = []
        var after: String?
        repeat {
            let page = try await bench.service.users.users(Auth.Users.List(after: after, limit: 10))
            #expect(page.users.count <= 10)
            seen += page.users.map(\.uid)
            after = page.after
        } while after != nil
        #expect(seen.count == 25)
        #expect(Set(seen) == uids)
        #expect(seen == seen.sorted())
        for nonsense in ["", "a\nb", String(repeating: "x", count: 129)] {
            let refused = await wireError { try await bench.service.users.users(Auth.Users.List(after: nonsense)) }
            #expect(refused?.code == .invalidArgument && refused?.data["parameter"] == "after", "\(nonsense)")
        }
        for limit in [0, -1, 1001] {
            #expect(
                await wireError { try await bench.service.users.users(Auth.Users.List(limit: limit)) }?.data[
                    "parameter"]
                    == "limit")
        }
    }

    @Test func lastFullPageIsTheLast() async throws {
        let bench = try await AuthBench.open()
        for _ in 0..<4 { _ = try await bench.anonymous() }
        let first = try await bench.service.users.users(Auth.Users.List(limit: 2))
        let second = try await bench.service.users.users(Auth.Users.List(after: first.after, limit: 2))
        #expect(second.users.count == 2)
        #expect(second.after == nil)
    }

    @Test func administratorMakesAnAccountThatSignsIn() async throws {
        let bench = try await AuthBench.open()
        var create = Auth.Users.Create()
        create.uid = "masuo"
        create.email = "masuo@example.com"
        create.emailVerified = true
        create.password = AuthBench.password
        create.customAttributes = #"{"staff":true,"email":"forged@example.com"}"#
        let account = try await bench.service.users.createUser(create)
        #expect(account.uid == "masuo")
        #expect(account.lastLoginAt == nil)
        let claims = try await bench.claims(try await bench.signIn().idToken)
        #expect(claims["staff"] == true)
        #expect(claims["email"] == "masuo@example.com", "attributes cannot pretend to be ours")
        #expect(claims["email_verified"] == true)

        create.email = "other@example.com"
        #expect(await wireError { try await bench.service.users.createUser(create) }?.reason == "DUPLICATE_LOCAL_ID")
        for uid in [
            String(repeating: "x", count: 129), "", "a\tb", "a\u{7F}", "a\u{85}b", "a\0",
        ] {
            create.uid = uid
            #expect(
                await wireError { try await bench.service.users.createUser(create) }?.reason == "INVALID_LOCAL_ID",
                "\(uid)")
        }
        for uid in [String(repeating: "鳩", count: 128), "masuo@example.com", "auth0|a/b", "$a#[b]"] {
            (create.uid, create.email) = (uid, nil)
            (create.username, create.password) = (nil, nil)
            #expect(try await bench.service.users.createUser(create).uid == uid)
        }
    }

    @Test func claimsThatAreReservedWrongOrLongAreRefused() async throws {
        let bench = try await AuthBench.open()
        let uid = try await bench.anonymous().uid
        var update = Auth.Users.Update(uid: uid)
        let long = #"{"a":""# + String(repeating: "x", count: 1000) + #""}"#
        for (text, reason) in [
            (#"{"sub":"me"}"#, "FORBIDDEN_CLAIM"), ("[]", "INVALID_CLAIMS"), (long, "CLAIMS_TOO_LARGE"),
        ] {
            update.customAttributes = text
            #expect(await wireError { try await bench.service.users.updateUser(update) }?.reason == reason)
        }
        update.customAttributes = #"{"level":3}"#
        #expect(try await bench.service.users.updateUser(update).customAttributes == #"{"level":3}"#)
        update.customAttributes = "{ }"
        #expect(try await bench.service.users.updateUser(update).customAttributes == nil)
    }

    @Test func revokingEndsSessionsAndEarlierTokens() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        bench.pass(seconds: 5)
        let account = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: session.uid))
        #expect(account.validSince == bench.now / 1000 + 1)
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.code == .unauthenticated)
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
        #expect(try await bench.account(try await bench.signIn()).uid == session.uid)
    }

    @Test func administratorDeletesAnAccount() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid))
        #expect(await wireError { try await bench.account(session) }?.reason == "USER_NOT_FOUND")
        #expect(
            await wireError { try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid)) }?.code
                == .notFound)
    }
}

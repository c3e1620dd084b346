import HatoModel
import Testing

@testable import HatoAuth

struct SignUpTests {
    @Test func accountSignsInWithEmailInAnyCaseOrWithUsername() async throws {
        let bench = try await AuthBench.open()
        let made = try await bench.signUp("Masuo@Example.COM", username: "Masuo.Fuguta", name: " マスオさん ")
        #expect(made.isNewUser)
        #expect(made.expiresIn == 3600)
        #expect(made.uid.utf8.count == 28)
        let byEmail = try await bench.signIn("masuo@EXAMPLE.com")
        let byUsername = try await bench.signIn(nil, username: "MASUO.fuguta")
        #expect(byEmail.uid == made.uid)
        #expect(byUsername.uid == made.uid)
        #expect(!byEmail.isNewUser)

        let account = try await bench.account(byEmail)
        #expect(account.email == "masuo@example.com")
        #expect(account.initialEmail == "masuo@example.com")
        #expect(account.username == "masuo.fuguta")
        #expect(account.displayName == "マスオさん")
        #expect(account.providerUserInfo.map(\.providerId) == ["password"])
        #expect(account.lastLoginAt == bench.now)
        #expect(!account.emailVerified)
    }

    @Test func usernameAloneMakesAnAccount() async throws {
        let bench = try await AuthBench.open()
        let made = try await bench.signUp(nil, username: "masuo")
        #expect(try await bench.signIn(nil, username: "masuo").uid == made.uid)
    }

    @Test func idTokenHasTheClaimsOfTheAccount() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(name: "マスオさん")
        let claims = try await bench.claims(session.idToken)
        #expect(claims["iss"] == "https://securetoken.google.com/hato")
        #expect(claims["aud"] == "hato")
        #expect(claims["sub"] == .string(session.uid))
        #expect(claims["user_id"] == .string(session.uid))
        #expect(claims["iat"] == .number(Double(bench.now / 1000)))
        #expect(claims["exp"] == .number(Double(bench.now / 1000 + 3600)))
        #expect(claims["auth_time"] == .number(Double(bench.now / 1000)))
        #expect(claims["name"] == "マスオさん")
        #expect(claims["email"] == "masuo@example.com")
        #expect(claims["email_verified"] == false)
        #expect(claims["provider_id"] == nil)
        #expect(claims["firebase"] == ["identities": ["email": ["masuo@example.com"]], "sign_in_provider": "password"])
    }

    @Test func nothingGivenMakesAnAnonymousAccount() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        let account = try await bench.account(session)
        #expect(account.providerUserInfo.isEmpty)
        #expect(account.email == nil)
        let claims = try await bench.claims(session.idToken)
        #expect(claims["provider_id"] == "anonymous")
        #expect(claims["firebase"] == ["identities": [:], "sign_in_provider": "anonymous"])
        #expect(bench.counts.hashes == 0)
    }

    @Test func longIDTokenIsRefusedBeforeItIsLookedUp() async throws {
        let bench = try await AuthBench.open()
        let limit = AuthLimits().idTokenBytesMax
        for (length, reason) in [(limit, "INVALID_ID_TOKEN"), (limit + 1, "credential_too_long")] {
            let token = String(repeating: "a", count: length)
            var request = Auth.SignUp(email: "masuo@example.com", password: "sazae-and-friends")
            request.idToken = token
            let error = await wireError { try await bench.service.signUps.signUp(request, CallOrigin()) }
            #expect(error?.reason == reason)
        }
    }

    @Test func everyWrongFieldOfTheFormIsNamed() async throws {
        let bench = try await AuthBench.open()
        let error = await wireError {
            try await bench.signUp("masuo@@example", "short", username: "ma suo", name: "  ")
        }
        #expect(error?.code == .invalidArgument)
        #expect(error?.reason == "INVALID_EMAIL")
        #expect(error?.data["parameter"] == "email")
        let problems = error?.data["problems"]?.array ?? []
        #expect(problems.compactMap { $0["parameter"]?.string } == ["email", "username", "password", "displayName"])
        #expect(
            problems.compactMap { $0["reason"]?.string }
                == ["INVALID_EMAIL", "INVALID_USERNAME", "WEAK_PASSWORD", "INVALID_DISPLAY_NAME"])
        #expect(bench.counts.hashes == 0)
    }

    @Test func halfACredentialIsRefusedWithTheMissingHalf() async throws {
        let bench = try await AuthBench.open()
        let noPassword = await wireError { try await bench.signUp("masuo@example.com", nil) }
        #expect(noPassword?.reason == "MISSING_PASSWORD")
        #expect(noPassword?.data["parameter"] == "password")
        let noName = await wireError { try await bench.signUp(nil, AuthBench.password) }
        #expect(noName?.reason == "MISSING_EMAIL")
        #expect(noName?.data["parameter"] == "email")
        let empty = await wireError { try await bench.signUp("", AuthBench.password) }
        #expect(empty?.reason == "INVALID_EMAIL")
    }

    @Test func emailAndUsernameBelongToOneAccount() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("masuo@example.com", username: "masuo")
        let sameEmail = await wireError { try await bench.signUp("MASUO@example.com") }
        #expect(sameEmail?.code == .alreadyExists)
        #expect(sameEmail?.reason == "EMAIL_EXISTS")
        #expect(sameEmail?.data["parameter"] == "email")
        let sameName = await wireError { try await bench.signUp("other@example.com", username: "Masuo") }
        #expect(sameName?.reason == "USERNAME_EXISTS")
        #expect(bench.counts.hashes == 1, "nothing is hashed for a name that is taken")
    }

    @Test func concurrentSignUpsWithOneEmailMakeOneAccount() async throws {
        let bench = try await AuthBench.open()
        let outcomes = await withTaskGroup(of: RPCError?.self) { group in
            for _ in 0..<20 { group.addTask { await wireError { try await bench.signUp() } } }
            return await group.reduce(into: [RPCError?]()) { $0.append($1) }
        }
        #expect(outcomes.filter { $0 == nil }.count == 1)
        #expect(outcomes.compactMap { $0?.reason } == Array(repeating: "EMAIL_EXISTS", count: 19))
    }

    @Test func anonymousAccountKeepsItsUidWhenItGetsCredentials() async throws {
        let bench = try await AuthBench.open()
        let before = try await bench.anonymous()
        bench.pass(seconds: 10)
        let after = try await bench.upgrade(before, "masuo@example.com")
        #expect(after.uid == before.uid)
        #expect(!after.isNewUser)
        #expect(try await bench.signIn().uid == before.uid)
        #expect(try await bench.claims(after.idToken)["provider_id"] == nil)
        // The sessions of the anonymous account have ended.
        #expect(await wireError { try await bench.refresh(before.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.account(before) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func anonymousAccountTakesAnAddressAlone() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        var request = Auth.Account.Update()
        request.email = "masuo@example.com"
        let updated = try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
        #expect(updated.account.uid == session.uid && updated.account.email == "masuo@example.com")
        #expect(!updated.account.emailVerified && updated.account.providerUserInfo.isEmpty)
        #expect(try await bench.claims(updated.idToken)["provider_id"] == nil)
        #expect(await wireError { try await bench.signIn() }?.reason == "INVALID_LOGIN_CREDENTIALS")
    }

    @Test func accountWithCredentialsIsNotUpgraded() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let error = await wireError { try await bench.upgrade(session, "other@example.com") }
        #expect(error?.reason == "PROVIDER_ALREADY_LINKED")
        let forged = await wireError { () -> Auth.Session in
            var request = Auth.SignUp(email: "other@example.com", password: AuthBench.password)
            request.idToken = String(session.idToken.dropLast(4)) + "AAAA"
            return try await bench.service.signUps.signUp(request, CallOrigin())
        }
        #expect(forged?.reason == "INVALID_ID_TOKEN")
    }

    @Test func upgradeToATakenEmailLeavesTheAnonymousAccountAsItWas() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        let anonymous = try await bench.anonymous()
        #expect(await wireError { try await bench.upgrade(anonymous, "masuo@example.com") }?.reason == "EMAIL_EXISTS")
        #expect(try await bench.refresh(anonymous.refreshToken).uid == anonymous.uid)
    }
}

import HatoIdentity
import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

struct SessionListTests {
    private func signIn(_ bench: AuthBench, _ label: String?, from address: String) async throws -> Auth.Session {
        var request = Auth.SignIn(email: "masuo@example.com", password: AuthBench.password)
        request.label = label
        return try await bench.service.signIns.signIn(request, CallOrigin(address: ClientAddress(address)))
    }

    private func list(_ bench: AuthBench, _ origin: CallOrigin, uid: String? = nil) async throws
        -> [Auth.Sessions.Entry]
    {
        try await bench.service.sessionList.sessions(Auth.Sessions.List(uid: uid), origin).sessions
    }

    @Test func ownerSeesTheDevicesAndWhichOneCalls() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        bench.pass(seconds: 10)
        let phone = try await signIn(bench, "マスオさんのiPhone", from: "192.0.2.1:5000")
        bench.pass(seconds: 10)
        _ = try await bench.service.sessions.refresh(
            Auth.Refresh(refreshToken: first.refreshToken), CallOrigin(address: ClientAddress("2001:db8::1")))
        let entries = try await list(bench, try await bench.origin(phone))
        #expect(entries.map(\.label) == [nil, "マスオさんのiPhone"], "the one used last is first")
        #expect(entries.map(\.address) == ["2001:db8:0:0::/64", "192.0.2.1"])
        #expect(entries.map(\.current) == [false, true])
        #expect(entries.map(\.usedAt) == [bench.now, bench.now - 10_000])
        #expect(entries[0].createdAt == bench.now - 20_000 && entries[0].provider == "password")
        let claims = try await bench.claims(phone.idToken)
        #expect(claims["sid"] == .string(entries[1].session))
        #expect(!phone.refreshToken.contains(entries[1].session.prefix(16)))
        bench.pass(seconds: 30 * 86_400 - 1)
        #expect(try await list(bench, CallOrigin(caller: .administrator), uid: first.uid).count == 1, "one has expired")
    }

    @Test func pagesHaveEverySessionOnceAlsoOneThatIsUsedMeanwhile() async throws {
        let bench = try await AuthBench.open()
        var sessions = [try await bench.signUp()]
        for number in 1..<7 {
            // Two begin at the same time.
            if number != 3 { bench.pass(seconds: 10) }
            sessions.append(try await bench.signIn())
        }
        let origin = try await bench.origin(sessions[6])
        var names: [String] = []
        for session in sessions { names.append(try #require(try await bench.claims(session.idToken)["sid"]?.string)) }
        var request = Auth.Sessions.List()
        request.limit = 3
        var pages: [[Auth.Sessions.Entry]] = []
        repeat {
            let page = try await bench.service.sessionList.sessions(request, origin)
            pages.append(page.sessions)
            request.after = page.after
            bench.pass(seconds: 10)
            // One of a later page.
            _ = try await bench.refresh(sessions[0].refreshToken)
        } while request.after != nil
        #expect(pages.map(\.count) == [3, 3, 1])
        let listed = pages.flatMap { $0 }.map(\.session)
        #expect(Set(listed) == Set(names) && listed.count == names.count)
        #expect(pages[0].map(\.session) == [6, 5, 4].map { names[$0] })
        request.limit = 7
        request.after = nil
        let whole = try await bench.service.sessionList.sessions(request, origin)
        #expect(whole.after == nil && whole.sessions.first?.session == names[0], "the one used last is first")
    }

    @Test func wrongPagesAreRefusedByName() async throws {
        let bench = try await AuthBench.open()
        let origin = try await bench.origin(try await bench.signUp())
        let wrong: [(String, (inout Auth.Sessions.List) -> Void)] = [
            ("limit", { $0.limit = 0 }), ("limit", { $0.limit = 1_001 }), ("after", { $0.after = "" }),
            ("after", { $0.after = "x-y" }), ("after", { $0.after = "1" }),
            ("after", { $0.after = "99999999999999999999-a" }),
            ("after", { $0.after = "1-" + String(repeating: "a", count: 127) }),
        ]
        for (name, change) in wrong {
            var request = Auth.Sessions.List()
            change(&request)
            let error = await wireError { try await bench.service.sessionList.sessions(request, origin) }
            #expect(error?.reason == "INVALID_PAGE_SELECTION" && error?.data["parameter"]?.string == name)
        }
        // A session that has ended since is no reason to refuse the next page.
        var request = Auth.Sessions.List()
        request.after = "\(Int64.max)-ended"
        #expect(try await bench.service.sessionList.sessions(request, origin).sessions.count == 1)
    }

    @Test func ownerEndsOneSessionOrAllOthers() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let second = try await bench.signIn()
        let third = try await bench.signIn()
        let origin = try await bench.origin(first)
        let name = try #require(try await bench.claims(second.idToken)["sid"]?.string)
        for _ in 0..<2 {
            _ = try await bench.service.sessionList.end(Auth.Sessions.End(session: name), origin)
        }
        #expect(await wireError { try await bench.refresh(second.refreshToken) }?.reason == "TOKEN_EXPIRED")
        _ = try await bench.refresh(third.refreshToken)
        _ = try await bench.service.sessionList.end(Auth.Sessions.End(others: true), origin)
        #expect(await wireError { try await bench.refresh(third.refreshToken) }?.reason == "TOKEN_EXPIRED")
        _ = try await bench.refresh(first.refreshToken)
        #expect(try await list(bench, origin).map(\.current) == [true])
    }

    @Test func oneUserForksSoManyTimes() async throws {
        let bench = try await AuthBench.open { $0.limits.profileChanges = RateLimit(burst: 3, perMinute: 1) }
        let session = try await bench.signUp()
        func fork(_ number: Int) async -> RPCError? {
            let origin = CallOrigin(address: ClientAddress("2001:db8:0:\(number)::1"))
            return await wireError {
                try await bench.service.sessionList.fork(
                    Auth.Sessions.Fork(refreshToken: session.refreshToken, label: "widget"), origin)
            }
        }
        for number in 0..<3 { #expect(await fork(number) == nil) }
        #expect(await fork(3)?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func forksEndWithTheirSession() async throws {
        let bench = try await AuthBench.open()
        func fork(_ session: Auth.Session) async throws -> Auth.Session {
            try await bench.service.sessionList.fork(
                Auth.Sessions.Fork(refreshToken: session.refreshToken, label: "widget"), CallOrigin())
        }
        let first = try await bench.signUp()
        let (phone, kept) = (try await bench.signIn(), try await fork(first))
        let widget = try await fork(phone)
        let name = try #require(try await bench.claims(phone.idToken)["sid"]?.string)
        _ = try await bench.service.sessionList.end(Auth.Sessions.End(session: name), try await bench.origin(first))
        #expect(await wireError { try await bench.refresh(widget.refreshToken) }?.reason == "TOKEN_EXPIRED")
        _ = try await bench.refresh(kept.refreshToken)
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: first.refreshToken))
        #expect(await wireError { try await bench.refresh(kept.refreshToken) } != nil)
    }

    /// For an hour the ID token of an ended session is still valid by its signature.
    @Test func theTokenOfAnEndedSessionTakesNoAccount() async throws {
        let bench = try await AuthBench.open()
        let owner = try await bench.anonymous()
        let thief = try await bench.service.sessionList.fork(
            Auth.Sessions.Fork(refreshToken: owner.refreshToken), CallOrigin())
        let name = try #require(try await bench.claims(thief.idToken)["sid"]?.string)
        _ = try await bench.service.sessionList.end(Auth.Sessions.End(session: name), try await bench.origin(owner))
        #expect(await wireError { try await bench.upgrade(thief, "thief@example.com") }?.reason == "TOKEN_EXPIRED")
        let origin = try await bench.origin(thief)
        #expect(await wireError { try await bench.service.accounts.deleteAccount(origin) }?.reason == "TOKEN_EXPIRED")
        _ = try await bench.upgrade(owner, "owner@example.com")
    }

    @Test func sessionOfAnotherAccountIsNotReached() async throws {
        let bench = try await AuthBench.open()
        let masuo = try await bench.signUp()
        let sazae = try await bench.signUp("sazae@example.com")
        let origin = try await bench.origin(masuo)
        let name = try #require(try await bench.claims(sazae.idToken)["sid"]?.string)
        _ = try await bench.service.sessionList.end(Auth.Sessions.End(session: name), origin)
        let named = Auth.Sessions.End(uid: sazae.uid, session: name)
        #expect(await wireError { try await bench.service.sessionList.end(named, origin) }?.code == .permissionDenied)
        #expect(await wireError { try await list(bench, origin, uid: sazae.uid) }?.code == .permissionDenied)
        #expect(await wireError { try await list(bench, CallOrigin()) }?.code == .unauthenticated)
        _ = try await bench.refresh(sazae.refreshToken)
    }

    @Test func administratorsNameTheUser() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let origin = CallOrigin(caller: .administrator)
        #expect(await wireError { try await list(bench, origin) }?.data["parameter"] == "uid")
        #expect(await wireError { try await list(bench, origin, uid: "nobody") }?.reason == "USER_NOT_FOUND")
        #expect(try await list(bench, origin, uid: session.uid).map(\.current) == [false])
        let all = Auth.Sessions.End(uid: session.uid, others: true)
        _ = try await bench.service.sessionList.end(all, origin)
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func endNeedsExactlyOneWayToNameSessions() async throws {
        let bench = try await AuthBench.open()
        let origin = try await bench.origin(try await bench.signUp())
        for request in [
            Auth.Sessions.End(), Auth.Sessions.End(others: false), Auth.Sessions.End(session: "x", others: true),
        ] {
            let error = await wireError { try await bench.service.sessionList.end(request, origin) }
            #expect(error?.code == .invalidParams && error?.data["parameter"] == "session")
        }
    }

    @Test func widgetGetsASessionOfItsOwn() async throws {
        let bench = try await AuthBench.open()
        let app = try await bench.anonymous()
        bench.pass(seconds: 60)
        let request = Auth.Sessions.Fork(refreshToken: app.refreshToken, label: "Widget")
        var widget = try await bench.service.sessionList.fork(request, CallOrigin())
        #expect(widget.uid == app.uid && widget.isNewUser == false)
        let claims = try await bench.claims(widget.idToken)
        #expect(claims["auth_time"] == .number(Double(bench.now / 1000 - 60)), "forking is not signing in")
        #expect(claims["provider_id"] == "anonymous")
        #expect(try await list(bench, try await bench.origin(app)).compactMap(\.label) == ["Widget"])
        // Both refresh for days, each at its own times.
        var own = app
        for _ in 0..<10 {
            bench.pass(seconds: 40_000)
            own = try await bench.refresh(own.refreshToken)
            bench.pass(seconds: 40_000)
            widget = try await bench.refresh(widget.refreshToken)
        }
        #expect(own.uid == widget.uid)
    }

    @Test func forkNeedsATokenThatIsHeldAndEndsNoSession() async throws {
        let bench = try await AuthBench.open { $0.limits.sessionsPerAccountMax = 2 }
        let first = try await bench.signUp()
        let second = try await bench.refresh(first.refreshToken)
        let third = try await bench.refresh(second.refreshToken)
        func fork(_ token: String, _ label: String? = nil) async -> RPCError? {
            await wireError {
                try await bench.service.sessionList.fork(
                    Auth.Sessions.Fork(refreshToken: token, label: label), CallOrigin())
            }
        }
        #expect(await fork(first.refreshToken)?.reason == "INVALID_REFRESH_TOKEN")
        #expect(await fork("nonsense")?.reason == "INVALID_REFRESH_TOKEN")
        for label in ["", "  ", "a\u{7}", String(repeating: "あ", count: 101)] {
            let error = await fork(third.refreshToken, label)
            #expect(error?.reason == "INVALID_LABEL" && error?.data["parameter"] == "label")
        }
        // The forked session is not among those that end for others.
        for token in [second.refreshToken, third.refreshToken, third.refreshToken] { #expect(await fork(token) == nil) }
        let fourth = try await bench.refresh(third.refreshToken)
        var update = Auth.Users.Update(uid: first.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        #expect(await fork(fourth.refreshToken)?.reason == "USER_DISABLED")
    }

    @Test func aWidgetThatForksAtEachStartEndsNoOtherDevice() async throws {
        let bench = try await AuthBench.open {
            $0.limits.sessionsPerAccountMax = 6
            $0.limits.forksPerSignInMax = 3
        }
        let phone = try await bench.signUp()
        var forks: [Auth.Session] = []
        func fork() async throws {
            bench.pass(seconds: 1)
            let request = Auth.Sessions.Fork(refreshToken: phone.refreshToken, label: "Widget")
            forks.append(try await bench.service.sessionList.fork(request, CallOrigin()))
        }
        let tablet = try await bench.signIn()
        for _ in 0..<5 { try await fork() }
        let origin = try await bench.origin(tablet)
        #expect(try await list(bench, origin).count == 5, "of one sign-in there are three forks at most")
        let laptop = try await bench.signIn()
        for _ in 0..<3 { try await fork() }
        for token in [tablet, laptop, forks[7], forks[6], forks[5]] { _ = try await bench.refresh(token.refreshToken) }
        for fork in forks[..<5] {
            let ended = await wireError { try await bench.refresh(fork.refreshToken) }
            #expect(ended?.reason == "TOKEN_EXPIRED")
        }
    }

    @Test func aForkIsRefusedWhereOnlyOtherDevicesCouldEnd() async throws {
        let bench = try await AuthBench.open { $0.limits.sessionsPerAccountMax = 2 }
        let phone = try await bench.signUp()
        let tablet = try await bench.signIn()
        let request = Auth.Sessions.Fork(refreshToken: phone.refreshToken)
        let refused = await wireError { try await bench.service.sessionList.fork(request, CallOrigin()) }
        #expect(refused?.reason == "too_many_sessions" && refused?.code == .resourceExhausted)
        bench.pass(seconds: 29 * 86_400)
        let used = try await bench.refresh(phone.refreshToken)
        // That of the tablet has expired.
        bench.pass(seconds: 2 * 86_400)
        _ = try await bench.service.sessionList.fork(
            Auth.Sessions.Fork(refreshToken: used.refreshToken), CallOrigin())
        #expect(await wireError { try await bench.refresh(tablet.refreshToken) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func aStolenTokenEndsWhatWasForkedWithIt() async throws {
        let bench = try await AuthBench.open { $0.refresh.absoluteSeconds = 86_400 }
        let first = try await bench.signUp()
        let other = try await bench.signIn()
        var forked = try await bench.service.sessionList.fork(
            Auth.Sessions.Fork(refreshToken: first.refreshToken), CallOrigin())
        // A fork of the fork is of the same family.
        let second = try await bench.service.sessionList.fork(
            Auth.Sessions.Fork(refreshToken: forked.refreshToken), CallOrigin())
        forked = try await bench.refresh(forked.refreshToken)
        let used = try await bench.refresh(first.refreshToken)
        _ = try await bench.refresh(used.refreshToken)
        bench.pass(seconds: 31)
        #expect(await wireError { try await bench.refresh(first.refreshToken) }?.reason == "INVALID_REFRESH_TOKEN")
        for token in [forked.refreshToken, second.refreshToken] {
            #expect(await wireError { try await bench.refresh(token) }?.reason == "TOKEN_EXPIRED")
        }
        let late = try await bench.refresh(other.refreshToken)
        bench.pass(seconds: 86_000)
        let last = try await bench.service.sessionList.fork(
            Auth.Sessions.Fork(refreshToken: late.refreshToken), CallOrigin())
        bench.pass(seconds: 400)
        let over = await wireError { try await bench.refresh(last.refreshToken) }
        #expect(over?.reason == "TOKEN_EXPIRED", "a fork prolongs no sign-in")
    }

    @Test func aUsedTokenMayForkAsLongAsItWouldBeRepeated() async throws {
        let bench = try await AuthBench.open { $0.refresh.lateSeconds = 100 }
        let first = try await bench.signUp()
        _ = try await bench.refresh(first.refreshToken)
        let request = Auth.Sessions.Fork(refreshToken: first.refreshToken)
        bench.pass(seconds: 100)
        _ = try await bench.service.sessionList.fork(request, CallOrigin())
        bench.pass(seconds: 1)
        let late = await wireError { try await bench.service.sessionList.fork(request, CallOrigin()) }
        #expect(late?.reason == "INVALID_REFRESH_TOKEN")
    }

    @Test func aTokenThatMayNotForkTakesNothingOfItsOwner() async throws {
        let bench = try await AuthBench.open {
            $0.refresh.lateSeconds = 100
            $0.limits.profileChanges = RateLimit(burst: 1, perMinute: 1)
        }
        let first = try await bench.signUp()
        let owner = try await bench.refresh(first.refreshToken)
        bench.pass(seconds: 101)
        let id = try #require(RefreshToken(first.refreshToken)).sessionID
        let guessed = RefreshToken(sessionID: id, secret: [UInt8](repeating: 7, count: 32)).text
        for token in [first.refreshToken, guessed, first.refreshToken, guessed] {
            let refused = await wireError {
                try await bench.service.sessionList.fork(Auth.Sessions.Fork(refreshToken: token), CallOrigin())
            }
            #expect(refused?.reason == "INVALID_REFRESH_TOKEN")
        }
        let request = Auth.Sessions.Fork(refreshToken: owner.refreshToken)
        _ = try await bench.service.sessionList.fork(request, CallOrigin())
        let more = await wireError { try await bench.service.sessionList.fork(request, CallOrigin()) }
        #expect(more?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func theTokenOfAnEndedSessionEndsNoOthersAndChangesNoPassword() async throws {
        let bench = try await AuthBench.open()
        let owner = try await bench.signUp()
        let thief = try await bench.signIn()
        let origin = try await bench.origin(thief)
        let name = try #require(try await bench.claims(thief.idToken)["sid"]?.string)
        _ = try await bench.service.sessionList.end(Auth.Sessions.End(session: name), try await bench.origin(owner))
        let others = Auth.Sessions.End(others: true)
        #expect(await wireError { try await bench.service.sessionList.end(others, origin) }?.reason == "TOKEN_EXPIRED")
        var update = Auth.Account.Update()
        update.password = "a better one than before"
        let refused = await wireError { try await bench.service.accounts.updateAccount(update, origin) }
        #expect(refused?.reason == "TOKEN_EXPIRED")
        _ = try await bench.refresh(owner.refreshToken)
    }

    @Test func aTokenWithoutASessionEndsNoOthers() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        guard case .user(var user) = try await bench.origin(session).caller else { return }
        user.claims["sid"] = nil
        let origin = CallOrigin(caller: .user(user))
        let others = Auth.Sessions.End(others: true)
        let refused = await wireError { try await bench.service.sessionList.end(others, origin) }
        #expect(refused?.data["parameter"] == "others")
        _ = try await bench.refresh(session.refreshToken)
    }

    @Test func newPasswordKeepsTheNameOfTheDevice() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        let phone = try await signIn(bench, "マスオさんのiPhone", from: "192.0.2.1")
        var update = Auth.Account.Update()
        update.password = "a better one than before"
        let result = try await bench.service.accounts.updateAccount(update, try await bench.origin(phone))
        let caller = try await bench.service.authenticator.authenticate(result.idToken)
        let entries = try await list(bench, CallOrigin(caller: caller))
        #expect(entries.map(\.label) == ["マスオさんのiPhone"] && entries.map(\.current) == [true])
    }
}

extension AuthService {
    var sessionList: SessionListMethods { SessionListMethods(service: self) }
}

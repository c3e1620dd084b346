import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

/// How often people change their accounts.
struct UpdateLimitTests {
    private static let tooMany = "TOO_MANY_ATTEMPTS_TRY_LATER"

    /// The first call that is refused as one too many, from `address`; nil: none of a thousand was.
    private func refused(
        _ bench: AuthBench, _ session: Auth.Session, from address: String? = nil,
        _ change: (inout Auth.Account.Update, _ number: Int) -> Void
    ) async throws -> Int? {
        var origin = try await bench.origin(session)
        origin.address = address.map { ClientAddress($0) }
        for number in 0..<1000 {
            var update = Auth.Account.Update()
            change(&update, number)
            let error = await wireError { [update, origin] in
                try await bench.service.accounts.updateAccount(update, origin)
            }
            if error?.reason == Self.tooMany { return number }
        }
        return nil
    }

    @Test func takenNamesAreNotFoundByTrying() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("sazae@example.com", username: "sazae")
        let session = try await bench.signUp()
        let first = try await refused(bench, session) { update, _ in update.username = "sazae" }
        #expect(first == bench.service.configuration.limits.signUpsPerAddress.burst)
        // The profile has a limit of its own, and other users have theirs.
        var update = Auth.Account.Update()
        update.displayName = "マスオ"
        _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(session))
        let other = try await bench.signUp("namihei@example.com")
        update.username = "namihei"
        _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(other))
        // One more every few seconds.
        bench.pass(seconds: 6)
        var again = Auth.Account.Update()
        again.username = "masuo"
        _ = try await bench.service.accounts.updateAccount(again, try await bench.origin(session))
    }

    @Test func aProfileChangesSixtyTimesAMinuteInTheLongRun() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let first = try await refused(bench, session) { $0.displayName = "\($1)" }
        #expect(first == 60)
        bench.pass(seconds: 60)
        #expect(try await refused(bench, session) { $0.displayName = "\($1)" } == 60)
    }

    @Test func allAccountsOfAnAddressShareALimit() async throws {
        let bench = try await AuthBench.open()
        // Ten times that of one user.
        for number in 0..<10 {
            let user = try await bench.signUp("user\(number)@example.com")
            #expect(try await refused(bench, user, from: "192.0.2.1") { $0.displayName = "\($1)" } == 60)
        }
        let last = try await bench.signUp("sazae@example.com")
        #expect(try await refused(bench, last, from: "192.0.2.1") { $0.displayName = "\($1)" } == 0)
        // The one that was refused counts for its user.
        #expect(try await refused(bench, last, from: "192.0.2.2") { $0.displayName = "\($1)" } == 59)
    }

    @Test func anAdministratorThatSpeaksAsTheUserIsNotLimited() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let origin = CallOrigin(caller: .user(Caller.User(uid: session.uid)), address: ClientAddress("192.0.2.1"))
        for number in 0..<200 {
            var update = Auth.Account.Update()
            update.displayName = "\(number)"
            _ = try await bench.service.accounts.updateAccount(update, origin)
        }
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// The phone numbers of accounts: data that administrators set (spec auth §2 and §5).
@Suite(.timeLimit(.minutes(10)))
struct PhoneNumberTests {
    private static let number = "+819012345678"

    private func created(
        _ bench: AuthBench, _ email: String? = nil, number: String? = PhoneNumberTests.number
    ) async throws -> Auth.Account {
        var request = Auth.Users.Create()
        (request.email, request.phoneNumber) = (email, number)
        return try await bench.service.users.createUser(request)
    }

    private func found(_ bench: AuthBench, _ number: String = PhoneNumberTests.number) async throws -> Auth.Account {
        var request = Auth.Users.Get()
        request.phoneNumber = number
        return try await bench.service.users.user(request)
    }

    @Test func anAccountIsFoundByItsNumber() async throws {
        let bench = try await AuthBench.open()
        let account = try await created(bench, "masuo@example.com")
        #expect(account.phoneNumber == Self.number)
        #expect(account.providerUserInfo.map(\.providerId) == ["phone"])
        #expect(account.providerUserInfo.map(\.rawId) == [Self.number])
        #expect(try await found(bench) == account)
        let page = try await bench.service.users.users(Auth.Users.List())
        #expect(page.users == [account])
        let other = await wireError { try await found(bench, "+819012345679") }
        #expect(other?.reason == "USER_NOT_FOUND")
        var two = Auth.Users.Get(email: "masuo@example.com")
        two.phoneNumber = Self.number
        #expect(await wireError { try await bench.service.users.user(two) }?.reason == "MISSING_IDENTIFIER")
    }

    @Test func aNumberIsOfOneAccount() async throws {
        let bench = try await AuthBench.open()
        let masuo = try await created(bench)
        let taken = await wireError { try await created(bench) }
        #expect(taken?.code == .alreadyExists && taken?.reason == "PHONE_NUMBER_EXISTS")
        #expect(taken?.data["parameter"] == "phoneNumber")
        let sazae = try await created(bench, number: "+12")
        var update = Auth.Users.Update(uid: sazae.uid)
        update.phoneNumber = Self.number
        #expect(await wireError { try await bench.service.users.updateUser(update) }?.reason == "PHONE_NUMBER_EXISTS")
        // A number that its account no longer has is free, and leads to no account.
        var change = Auth.Users.Update(uid: masuo.uid)
        change.phoneNumber = "+13"
        #expect(try await bench.service.users.updateUser(change).phoneNumber == "+13")
        #expect(await wireError { try await found(bench) }?.reason == "USER_NOT_FOUND")
        #expect(try await bench.service.users.updateUser(update).phoneNumber == Self.number)
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: sazae.uid))
        #expect(try await created(bench).phoneNumber == Self.number)
    }

    @Test func deletedProviderPhoneTakesTheNumberAway() async throws {
        let bench = try await AuthBench.open()
        let account = try await created(bench)
        var update = Auth.Users.Update(uid: account.uid)
        update.deleteProviders = ["phone"]
        update.phoneNumber = "+12"
        let both = await wireError { try await bench.service.users.updateUser(update) }
        #expect(both?.reason == "INVALID_REQ_TYPE" && both?.data["parameter"] == "deleteProviders")
        update.phoneNumber = nil
        let updated = try await bench.service.users.updateUser(update)
        #expect(updated.phoneNumber == nil && updated.providerUserInfo.isEmpty)
        #expect(await wireError { try await found(bench) }?.reason == "USER_NOT_FOUND")
    }

    @Test func tokensHaveTheNumberAndNoClaimReplacesIt() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        #expect(try await bench.claims(session.idToken)["phone_number"] == nil)
        var update = Auth.Users.Update(uid: session.uid)
        update.phoneNumber = Self.number
        update.customAttributes = #"{"phone_number":"+1999"}"#
        _ = try await bench.service.users.updateUser(update)
        let claims = try await bench.claims(try await bench.refresh(session.refreshToken).idToken)
        #expect(claims["phone_number"] == .string(Self.number))
        #expect(claims["firebase"]?["identities"]?["phone"] == [.string(Self.number)])
    }

    @Test func anAccountWithANumberIsNotAnonymous() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        var update = Auth.Users.Update(uid: session.uid)
        update.phoneNumber = Self.number
        _ = try await bench.service.users.updateUser(update)
        let account = try await bench.store.read { try AccountRows.find(session.uid, in: $0) }
        #expect(account?.isAnonymous == false)
    }

    @Test func numbersGoOutAndInAgain() async throws {
        let bench = try await AuthBench.open()
        _ = try await created(bench, "masuo@example.com")
        let rows = try await MovingMethods(service: bench.service).exportUsers(Auth.Users.Export()).users
        #expect(rows.map(\.phoneNumber) == [Self.number])
        let other = try await AuthBench.open()
        let result = try await MovingMethods(service: other.service).importUsers(Auth.Users.Import(users: rows))
        #expect(result.imported == 1 && result.errors.isEmpty)
        #expect(try await found(other).uid == rows.first?.uid)
        var taken = Auth.Users.Row(uid: "sazae")
        taken.phoneNumber = Self.number
        let second = try await MovingMethods(service: other.service).importUsers(Auth.Users.Import(users: [taken]))
        #expect(second.errors.map(\.reason) == ["PHONE_NUMBER_EXISTS"])
        var twin = taken
        twin.uid = "wakame"
        let twins = Auth.Users.Import(users: [taken, twin])
        #expect(
            await wireError { try await MovingMethods(service: other.service).importUsers(twins) }?.reason
                == "DUPLICATE_PHONE_NUMBER")
    }
}

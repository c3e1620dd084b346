import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Keys that are mixed into passwords.
@Suite struct PepperTests {
    private static let old = "pepper-of-the-tests-0123456789-abcdef-old"
    private static let new = "pepper-of-the-tests-0123456789-abcdef-new"

    private func bench(_ keys: [String], on store: (any Store)? = nil) async throws -> AuthBench {
        let pepper = try #require(Pepper(keys: keys))
        return try await AuthBench.open(on: store) { $0.pepper = pepper }
    }

    private func hash(_ bench: AuthBench, _ uid: String) async throws -> PasswordHash {
        try #require(try await bench.store.read { try AccountRows.find(uid, in: $0)?.passwordHash })
    }

    @Test func passwordIsCheckedWithItsKeyAndGetsTheNewestOne() async throws {
        let store = try MemoryStore()
        let plain = try await bench([], on: store)
        let uid = try await plain.signUp().uid
        #expect(try await hash(plain, uid).pepperID == nil)
        // The first key: at the next sign-in.
        let first = try await bench([Self.old], on: store)
        await #expect(throws: AuthError.self) { try await first.signIn("masuo@example.com", "wrong-password-1") }
        _ = try await first.signIn()
        let peppered = try await hash(first, uid)
        #expect(peppered.pepperID == Pepper(keys: [Self.old])?.currentID)
        #expect(peppered.text.contains(",keyid=") && PasswordHash(peppered.text)?.text == peppered.text)
        _ = try await first.signIn()
        #expect(try await hash(first, uid).text == peppered.text, "the key has not changed")
        // Another one in its place, while the former still checks.
        let second = try await bench([Self.new, Self.old], on: store)
        _ = try await second.signIn()
        #expect(try await hash(second, uid).pepperID == Pepper(keys: [Self.new])?.currentID)
        await #expect(throws: AuthError.self) { try await second.signIn("masuo@example.com", "wrong-password-1") }
        // The former is of no more use.
        _ = try await (try await bench([Self.new], on: store)).signIn()
    }

    @Test func keyThatPasswordsNeedMustNotBeMissing() async throws {
        let store = try MemoryStore()
        _ = try await (try await bench([Self.old], on: store)).signUp()
        await #expect(throws: PepperError(count: 1)) { try await bench([], on: store) }
        await #expect(throws: PepperError(count: 1)) { try await bench([Self.new], on: store) }
        #expect(PepperError(count: 1).description.contains("pepper-file"))
        _ = try await (try await bench([Self.new, Self.old], on: store)).signIn()
        _ = try await bench([Self.new], on: store)
    }

    @Test func sameHashAndSaltDifferWithThePepper() async throws {
        let (password, salt) = (Password("sazae-and-friends"), [UInt8](repeating: 1, count: 16))
        let pepper = try #require(Pepper(keys: [Self.old]))
        let mixed = try #require(pepper.applied(to: password.bytes, pepper.currentID))
        #expect(mixed.count == 32 && mixed != password.bytes)
        #expect(pepper.applied(to: password.bytes, nil) == password.bytes)
        #expect(pepper.applied(to: password.bytes, "another") == nil)
        let cost = ScryptCost(logN: 4, r: 1, p: 1)
        #expect(
            try PasswordHasher.scrypt(mixed, salt, cost) != PasswordHasher.scrypt(password.bytes, salt, cost))
    }

    @Test func importRefusesAHashWithTheKeyOfAnotherService() throws {
        let text = "$scrypt$ln=4,r=1,p=1,keyid=abc$MDEyMzQ1Njc4OWFiY2RlZg$" + String(repeating: "A", count: 43)
        #expect(PasswordHash(text)?.pepperID == "abc")
        var row = Auth.Users.Row(uid: "u")
        row.passwordHash = text
        let policy = try HashImportPolicy(Auth.Users.Import(users: [row]), memoryBytesMax: 1 << 28)
        let problem = #expect(throws: FieldProblem.self) { try policy.hash(of: row) }
        #expect(problem?.message.contains("pepper-file has none with keyid abc") == true)
        // Only of the own scheme.
        #expect(PasswordHash(text.replacing("$scrypt$", with: "$standard-scrypt$")) == nil)
        #expect(PasswordHash(text.replacing("keyid=abc", with: "keyid=")) == nil)
    }

    @Test func shortKeyIsRefused() { #expect(Pepper(keys: ["short"]) == nil) }
}

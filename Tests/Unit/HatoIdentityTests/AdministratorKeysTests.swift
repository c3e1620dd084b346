import HatoIdentity
import Testing

struct AdministratorKeysTests {
    private let first = String(repeating: "a", count: 32)
    private let second = "second-key-0123456789-0123456789-abc"

    @Test func everyLineIsAKey() throws {
        let file = try TemporaryFile("\(first)\n\n  \(second)\t\r\n", mode: 0o600)
        let keys = try AdministratorKeys(file: file.path)
        #expect(keys.contains(first))
        #expect(keys.contains(second))
        #expect(!keys.contains(""))
        #expect(!keys.contains(first + "\n" + second))
        #expect(!keys.contains(String(first.dropLast())))
        #expect(keys.warnings.isEmpty)
    }

    @Test func shortKeyIsRefusedNamingItsLineAndNotItself() throws {
        let file = try TemporaryFile("\(first)\nshort-secret\n", mode: 0o600)
        let error = #expect(throws: SecretFileError.self) { try AdministratorKeys(file: file.path) }
        #expect(error?.description.contains("line 2") == true)
        #expect(error?.description.contains("short-secret") == false)
    }

    @Test func keyThatIsNoTextIsRefused() throws {
        let file = try TemporaryFile(first + "\u{1}", mode: 0o600)
        let error = #expect(throws: SecretFileError.self) { try AdministratorKeys(file: file.path) }
        #expect(error?.description.contains("is no text") == true)
    }

    @Test func emptyAndMissingFilesAreRefused() throws {
        let file = try TemporaryFile("\n \n", mode: 0o600)
        #expect(throws: SecretFileError.self) { try AdministratorKeys(file: file.path) }
        let error = #expect(throws: SecretFileError.self) { try AdministratorKeys(file: "/nonexistent/key") }
        #expect(error?.description.contains("/nonexistent/key") == true)
    }

    @Test(arguments: [0o620, 0o602, 0o604, 0o444])
    func fileThatOthersMayWriteOrEveryUserMayReadIsRefusedWithTheRemedy(mode: Int) throws {
        let file = try TemporaryFile(first, mode: mode)
        let error = #expect(throws: SecretFileError.self) { try AdministratorKeys(file: file.path) }
        let text = try #require(error?.description)
        #expect(text.hasPrefix("\(file.path): "))
        #expect(text.contains("(mode 0\(String(mode, radix: 8))); its owner alone should: chmod 600"))
    }

    @Test func fileThatItsGroupMayReadCausesAWarning() throws {
        let readable = try TemporaryFile(first, mode: 0o640)
        let warnings = try AdministratorKeys(file: readable.path).warnings
        #expect(warnings.count == 1)
        #expect(warnings.first?.contains("(mode 0640)") == true)
    }

    @Test func keysFromMemoryHaveTheSameLength() {
        #expect(AdministratorKeys(keys: ["short"]) == nil)
        #expect(AdministratorKeys(keys: [first])?.contains(first) == true)
        #expect(!AdministratorKeys.none.contains(first))
    }
}

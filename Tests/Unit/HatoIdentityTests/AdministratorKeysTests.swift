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

    @Test func fileThatOthersMayWriteIsRefusedAndOneTheyMayReadIsWarnedAbout() throws {
        let writable = try TemporaryFile(first, mode: 0o620)
        #expect(throws: SecretFileError.self) { try AdministratorKeys(file: writable.path) }
        let readable = try TemporaryFile(first, mode: 0o444)
        #expect(try AdministratorKeys(file: readable.path).warnings.count == 1)
    }

    @Test func keysFromMemoryHaveTheSameLength() {
        #expect(AdministratorKeys(keys: ["short"]) == nil)
        #expect(AdministratorKeys(keys: [first])?.contains(first) == true)
        #expect(!AdministratorKeys.none.contains(first))
    }
}

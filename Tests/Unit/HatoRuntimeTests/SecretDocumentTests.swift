import Foundation
import HatoRuntime
import Testing

@Suite struct SecretDocumentTests {
    private static let certificate = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
    private static let key = "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n"

    private func isRead(_ text: String, mode: Int) throws -> Bool {
        let file = FileManager.default.temporaryDirectory.appending(path: "hato-secret-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(text.utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        do {
            return try SecretDocument.secret(file.path, setting: "apps-file").bytes == Array(text.utf8)
        } catch {
            return false
        }
    }

    @Test func certificatesMayBeReadByOthersAndKeysMayNot() throws {
        #expect(try isRead(Self.certificate + Self.certificate, mode: 0o644))
        #expect(try isRead(Self.key, mode: 0o600))
        #expect(try !isRead(Self.key, mode: 0o644))
        #expect(try !isRead(Self.certificate + Self.key, mode: 0o644))
        #expect(try !isRead("key: x\n" + Self.certificate, mode: 0o644))
        #expect(try !isRead(Self.certificate, mode: 0o666))
    }
}

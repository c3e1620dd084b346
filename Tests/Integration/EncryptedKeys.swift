import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `key-encryption-file` of a built service.
@Suite(.timeLimit(.minutes(10)))
struct EncryptedKeys {
    /// Whether a file below the folder has the text.
    private func holds(_ text: String, below folder: String) throws -> Bool {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
        return names.contains { name in
            FileManager.default.contents(atPath: "\(folder)/\(name)")?.range(of: Data(text.utf8)) != nil
        }
    }

    @Test func privateKeysAreOnDiskOnlyEncryptedAndNeedTheFileAtTheNextStart() async throws {
        let folder = try TemporaryFolder()
        let (data, keys) = ("\(folder.path)/data", try folder.write("key", String(repeating: "k", count: 40)))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keys)
        let arguments = ["--data", data, "--scrypt-log-n", "4"]
        let encrypted = arguments + ["--key-encryption-file", keys]
        let first = try await ServingProgram("hato-auth", encrypted, in: folder)
        var client = try first.client()
        let session = try #require(try await client.call(Auth.SignUp()).session)
        _ = try await client.call(Auth.Keys.Rotate())
        await client.close()
        await first.stop()
        #expect(try holds(#""sealed":""#, below: data))
        #expect(try !holds(#""d":""#, below: data))
        let refused = try await Executable.run("hato-auth", ["serve"] + arguments + ["--exit-with-stdin"])
        #expect(refused.code == 78)
        #expect(refused.error.contains("setting key-encryption-file is missing"), "\(refused.error)")
        let again = try await ServingProgram("hato-auth", encrypted, in: folder)
        client = try again.client()
        #expect(try await client.call(Auth.Refresh(refreshToken: session.refreshToken)).uid == session.uid)
        await client.close()
        await again.stop()
    }
}

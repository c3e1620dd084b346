import HatoIdentity
import Testing

struct SecretFileAccessTests {
    private static let user: UInt32 = 10_001

    private func verdict(owner: UInt32, _ mode: UInt32) -> SecretFileAccess.Verdict {
        SecretFileAccess(owner: owner, mode: mode).verdict(for: Self.user)
    }

    @Test(arguments: [0o600, 0o400, 0o700] as [UInt32])
    func fileOfTheServicesUserAloneIsSafe(mode: UInt32) {
        #expect(verdict(owner: Self.user, mode) == .safe)
    }

    @Test(arguments: [0o600, 0o440, 0o640] as [UInt32])
    func fileOfRootThatAGroupReadsIsSafe(mode: UInt32) {
        #expect(verdict(owner: 0, mode) == .safe)
    }

    @Test func fileOfAnotherUserIsRefusedNamingBothUsers() {
        #expect(
            verdict(owner: 1_000, 0o600)
                == .refused(
                    "belongs to user 1000, but the service runs as user 10001; give it to that user: chown 10001"))
    }

    @Test(arguments: [0o620, 0o602, 0o666] as [UInt32])
    func fileThatOthersMayWriteIsRefusedForEveryOwner(mode: UInt32) {
        for owner in [0, Self.user] {
            let expected =
                "others may write this file (mode 0\(String(mode, radix: 8))); its owner alone should: chmod 600"
            #expect(verdict(owner: owner, mode) == .refused(expected))
        }
    }

    @Test func fileThatEveryUserReadsIsRefusedWhereTheServiceCanForbidIt() {
        #expect(
            verdict(owner: Self.user, 0o604)
                == .refused("every user may read this file (mode 0604); its owner alone should: chmod 600"))
        // The mode of secrets from container engines.
        #expect(
            verdict(owner: 0, 0o444)
                == .warning("other users may read this file (mode 0444); its owner alone should: chmod 600"))
    }

    @Test func bitsOfTheFilesKindDoNotCount() {
        #expect(verdict(owner: Self.user, 0o100_600) == .safe)
    }

    @Test func publicKeysAreTrustedOnlyFromAFileThatOnlyItsOwnerWrites() {
        #expect(SecretFileAccess(owner: Self.user, mode: 0o644).isWrittenOnly(by: Self.user))
        #expect(!SecretFileAccess(owner: 1_000, mode: 0o600).isWrittenOnly(by: Self.user))
        #expect(!SecretFileAccess(owner: Self.user, mode: 0o660).isWrittenOnly(by: Self.user))
    }
}

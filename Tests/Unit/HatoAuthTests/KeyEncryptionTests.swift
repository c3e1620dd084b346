import HatoIdentity
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Private keys encrypted in the store with the keys of `key-encryption-file`.
struct KeyEncryptionTests {
    private static let (old, new) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32))

    private func encryption(_ keys: String...) throws -> KeyEncryption { try #require(KeyEncryption(keys: keys)) }

    private func restart(_ bench: AuthBench, _ keys: KeyEncryption?) async throws -> AuthBench {
        try await AuthBench.open(since: bench) { $0.keyEncryption = keys }
    }

    /// Whether a row of the store has one of the secrets of the service, in bytes or as text.
    private func hasSecretInClear(_ bench: AuthBench) async throws -> Bool {
        let ring = bench.service.ring
        let keys = [ring.current, ring.next].compactMap { $0.key?.rawRepresentation } + [bench.service.refreshKey]
        #expect(keys.count == 3)
        return try await bench.store.read { rows in
            var isFound = false
            try rows.rows(.all) { _, value in
                let text = String(decoding: value, as: UTF8.self)
                for key in keys where value == key || text.contains(Base64.url.encode(key)) { isFound = true }
                return true
            }
            return isFound
        }
    }

    @Test func aNewStoreHoldsNoSecretInClear() async throws {
        let keys = try encryption(Self.old)
        let bench = try await AuthBench.open { $0.keyEncryption = keys }
        let session = try await bench.signUp()
        #expect(try await !hasSecretInClear(bench))
        _ = try await bench.service.keys.rotateKeys()
        #expect(try await !hasSecretInClear(bench))
        let restarted = try await restart(bench, keys)
        #expect(try await restarted.account(session).uid == session.uid)
        #expect(try await restarted.refresh(session.refreshToken).uid == session.uid)
    }

    @Test func aStoreWithKeysInClearIsConvertedAtTheStart() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        #expect(try await hasSecretInClear(bench))
        let converted = try await restart(bench, try encryption(Self.old))
        #expect(try await !hasSecretInClear(converted))
        #expect(converted.service.ring.current.kid == bench.service.ring.current.kid)
        #expect(try await converted.account(session).uid == session.uid)
        #expect(try await converted.refresh(session.refreshToken).uid == session.uid)
    }

    @Test func encryptedKeysNeedTheFileThatEncryptedThem() async throws {
        let bench = try await AuthBench.open { $0.keyEncryption = KeyEncryption(keys: [Self.old]) }
        let missing = await #expect(throws: KeyEncryptionError.self) { try await restart(bench, nil) }
        let wrong = try encryption(Self.new)
        let other = await #expect(throws: KeyEncryptionError.self) { try await restart(bench, wrong) }
        #expect(missing == .noKey && other == .wrongKey)
        for error in [missing, other] {
            #expect(error?.description.hasPrefix("setting key-encryption-file") == true)
        }
    }

    @Test func theFirstKeyReplacesTheOthersAtTheStart() async throws {
        let bench = try await AuthBench.open { $0.keyEncryption = KeyEncryption(keys: [Self.old]) }
        let session = try await bench.signUp()
        _ = try await restart(bench, try encryption(Self.new, Self.old))
        let alone = try await restart(bench, try encryption(Self.new))
        #expect(try await alone.refresh(session.refreshToken).uid == session.uid)
        #expect(try await !hasSecretInClear(alone))
    }

    @Test func anEncryptedKeyIsOfUseInItsOwnRowOnly() throws {
        let keys = try encryption(Self.old)
        let sealed = try keys.encrypt([1, 2, 3], of: "k1")
        #expect(sealed.count == 3 + KeyEncryption.addedBytes)
        #expect(keys.decrypt(sealed, of: "k1")?.secret == [1, 2, 3])
        #expect(keys.decrypt(sealed, of: "k2") == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(keys.decrypt(changed, of: "k1") == nil)
        }
        for count in 0..<sealed.count { #expect(keys.decrypt(Array(sealed[..<count]), of: "k1") == nil) }
        #expect(KeyEncryption(keys: []) == nil && KeyEncryption(keys: ["short"]) == nil)
    }
}

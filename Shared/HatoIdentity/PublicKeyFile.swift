import HatoModel

/// The public keys of auth on disk, so that a service starts while auth is down: `{"keys":[JWK…]}`, mode 0600, since a
/// user who can write it decides which tokens are trusted.
struct PublicKeyFile {
    let path: String

    /// Nil when there is no usable file: then the keys are fetched.
    func read() -> [VerificationKey]? {
        guard let (bytes, access) = try? SecretFile.read(path), access.isWrittenOnly(by: SecretFile.user),
            let json = try? JSONParser.parse(bytes), let result = try? Auth.Keys.decodeResult(json)
        else { return nil }
        let keys = result.keys.compactMap { VerificationKey($0) }
        return keys.isEmpty ? nil : keys
    }

    func write(_ keys: [Auth.JWK]) throws {
        try SecretFile.replace(path, with: Auth.Keys.Result(keys: keys).json.encoded)
    }
}

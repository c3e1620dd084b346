import HatoModel

/// Reads the password hashes of an import (spec auth §7). Pure.
struct HashImportPolicy: Sendable {
    private enum Source {
        /// Base64 of a text with all parameters.
        case encodedTexts
        case scheme(HashScheme, hashBytes: Int?)
    }

    /// What `firebase auth:export` writes to callers who may not read hashes.
    private static let redacted = "UkVEQUNURUQ="

    private let source: Source?
    private let memoryBytesMax: Int
    private let pepper: Pepper

    /// Throws `AuthError.invalidFields` for parameters that are missing, wrong or cost too much.
    init(_ request: Auth.Users.Import, _ pepper: Pepper = .none, memoryBytesMax: Int) throws(AuthError) {
        self.memoryBytesMax = memoryBytesMax
        self.pepper = pepper
        do {
            source = try Self.source(request)
            if source == nil, let row = request.users.firstIndex(where: { $0.passwordHash?.hasPrefix("$") == false }) {
                throw FieldProblem(
                    "hashAlgorithm", "MISSING_HASH_ALGORITHM",
                    "hashAlgorithm is missing: the passwordHash of row \(row) is no text that begins with $")
            }
            if case .scheme(let scheme, _)? = source, let problem = scheme.problem(memoryBytesMax: memoryBytesMax) {
                throw FieldProblem(problem.parameter, "INVALID_HASH_PARAMETERS", problem.message)
            }
        } catch let problem as FieldProblem {
            throw .invalidFields([problem])
        } catch {
            throw .invalidFields([])
        }
    }

    /// Nil when the row has no hash.
    func hash(of row: Auth.Users.Row) throws(FieldProblem) -> PasswordHash? {
        guard let text = row.passwordHash else { return nil }
        do {
            return try hash(text, salt: row.salt)
        } catch {
            let parameter = error.parameter == "salt" ? "salt" : "passwordHash"
            throw FieldProblem(parameter, "INVALID_PASSWORD_HASH", error.message)
        }
    }

    private func hash(_ text: String, salt: String?) throws(HashProblem) -> PasswordHash {
        if text.hasPrefix("$") { return try read(text) }
        guard text != Self.redacted else {
            throw HashProblem("passwordHash is REDACTED: export the accounts with the right to read hashes")
        }
        guard let bytes = Self.decoded(text) else { throw HashProblem("passwordHash should be in base64") }
        switch source {
        case .encodedTexts?, nil:
            return try read(String(decoding: bytes, as: UTF8.self))
        case .scheme(let scheme, let hashBytes)?:
            guard let salt = Self.decoded(salt ?? "") else { throw HashProblem("salt", "salt should be in base64") }
            let hash = PasswordHash(scheme, salt: salt, hash: bytes)
            if let problem = hash.problem(memoryBytesMax: memoryBytesMax) { throw problem }
            if let hashBytes, hashBytes != bytes.count {
                throw HashProblem("passwordHash should have \(hashBytes) bytes (dkLen), not \(bytes.count)")
            }
            return hash
        }
    }

    private func read(_ text: String) throws(HashProblem) -> PasswordHash {
        let hash = try PasswordHash.read(text, memoryBytesMax: memoryBytesMax)
        if let id = hash.pepperID, !pepper.contains(id) {
            throw HashProblem("passwordHash needs a key of another service: pepper-file has none with keyid \(id)")
        }
        return hash
    }

    /// Base64 in either alphabet, with or without padding: Firebase's own commands write both.
    static func decoded(_ text: String) -> [UInt8]? {
        var characters = text.utf8[...]
        while characters.last == UInt8(ascii: "="), characters.count > text.utf8.count - 2 { characters.removeLast() }
        let standard = characters.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        return Base64.standard.decode(standard)
    }
}

// The parameters of a request.
extension HashImportPolicy {
    private static func source(_ request: Auth.Users.Import) throws(FieldProblem) -> Source? {
        guard let algorithm = request.hashAlgorithm else { return nil }
        switch algorithm {
        case .bcrypt, .argon2: return .encodedTexts
        case .scrypt: return .scheme(.firebaseScrypt(try firebase(request)), hashBytes: nil)
        case .standardScrypt: return .scheme(.standardScrypt(try standard(request)), hashBytes: request.dkLen)
        case .hmacSHA512, .hmacSHA256, .hmacSHA1, .hmacMD5:
            let key = try bytes(request.signerKey, "signerKey")
            return .scheme(.hmac(digest(of: algorithm), key: key, order: order(request)), hashBytes: nil)
        case .pbkdf2SHA512, .pbkdf2SHA256, .pbkdfSHA1:
            let rounds = try given(request.rounds, "rounds")
            return .scheme(.pbkdf2(digest(of: algorithm), rounds: rounds), hashBytes: nil)
        case .sha512, .sha256, .sha1, .md5:
            return .scheme(
                .digest(digest(of: algorithm), rounds: request.rounds ?? 1, order: order(request)), hashBytes: nil)
        }
    }

    private static func firebase(_ request: Auth.Users.Import) throws(FieldProblem) -> FirebaseScrypt {
        FirebaseScrypt(
            logN: try given(request.memoryCost, "memoryCost"), r: try given(request.rounds, "rounds"),
            saltSeparator: try bytes(request.saltSeparator ?? "", "saltSeparator"),
            signerKey: try bytes(request.signerKey, "signerKey"))
    }

    private static func standard(_ request: Auth.Users.Import) throws(FieldProblem) -> ScryptCost {
        let n = try given(request.cpuMemCost, "cpuMemCost")
        guard n >= 2, n & (n - 1) == 0 else {
            throw problem("cpuMemCost", "cpuMemCost should be a power of 2 from 2 to 1048576, not \(n)")
        }
        return ScryptCost(
            logN: n.trailingZeroBitCount, r: try given(request.blockSize, "blockSize"),
            p: try given(request.parallelization, "parallelization"))
    }

    private static func digest(of algorithm: Auth.HashAlgorithm) -> HashDigest {
        switch algorithm {
        case .hmacMD5, .md5: .md5
        case .hmacSHA1, .pbkdfSHA1, .sha1: .sha1
        case .hmacSHA256, .pbkdf2SHA256, .sha256: .sha256
        case .hmacSHA512, .pbkdf2SHA512, .sha512, .scrypt, .standardScrypt, .bcrypt, .argon2: .sha512
        }
    }

    private static func order(_ request: Auth.Users.Import) -> SaltOrder {
        request.passwordHashOrder == .saltFirst ? .saltFirst : .passwordFirst
    }

    private static func given<Value>(_ value: Value?, _ name: String) throws(FieldProblem) -> Value {
        guard let value else { throw problem(name, "\(name) is missing") }
        return value
    }

    private static func bytes(_ text: String?, _ name: String) throws(FieldProblem) -> [UInt8] {
        guard let bytes = decoded(try given(text, name)) else { throw problem(name, "\(name) should be in base64") }
        return bytes
    }

    private static func problem(_ parameter: String, _ message: String) -> FieldProblem {
        FieldProblem(parameter, "INVALID_HASH_PARAMETERS", message)
    }
}

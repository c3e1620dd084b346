import Crypto

/// The keys that make a caller an administrator: every line of the file is one, so that keys can be rotated without
/// downtime.
///
/// Only digests are kept, and a credential is compared with all of them in constant time.
public struct AdministratorKeys: Sendable {
    /// The minimum length in bytes: a key is chosen once, and guessing it must be infeasible (protocol §2).
    public static let keyBytesMin = 32

    private let digests: [SHA256Digest]
    /// Warnings for the operator that do not stop the start.
    public let warnings: [String]

    /// No key: no caller is an administrator.
    public static let none = AdministratorKeys(digests: [], warnings: [])

    /// Keys from memory, for tests and for a service that has just generated one. Nil when a key is too short.
    public init?(keys: [String]) {
        guard keys.allSatisfy({ $0.utf8.count >= Self.keyBytesMin }) else { return nil }
        self.init(digests: keys.map { SHA256.hash(data: Array($0.utf8)) }, warnings: [])
    }

    /// Reads `path`: one key per line; blank lines and white space around keys are ignored. `SecretFileAccess` checks
    /// the file's owner and mode.
    /// Throws `SecretFileError` when the file cannot be read, others may read it, or a line is no key.
    public init(file path: String) throws(SecretFileError) {
        let (bytes, access) = try SecretFile.read(path)
        var warnings: [String] = []
        switch access.verdict(for: SecretFile.user) {
        case .safe: break
        case .warning(let text): warnings.append("\(path): \(text)")
        case .refused(let text): throw SecretFileError(path: path, problem: text)
        }
        var digests: [SHA256Digest] = []
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let key = Self.trimmed(line)
            if key.isEmpty { continue }
            guard key.count >= Self.keyBytesMin else {
                throw SecretFileError(
                    path: path,
                    problem:
                        "the key on line \(index + 1) has \(key.count) bytes, at least \(Self.keyBytesMin) are needed")
            }
            // Clients send it as JSON text.
            guard let text = String(validating: key, as: UTF8.self),
                !text.unicodeScalars.contains(where: { $0.value < 0x20 })
            else {
                throw SecretFileError(
                    path: path,
                    problem: "the key on line \(index + 1) is no text; make one with: openssl rand -base64 36")
            }
            digests.append(SHA256.hash(data: Array(key)))
        }
        guard !digests.isEmpty else { throw SecretFileError(path: path, problem: "holds no key") }
        self.init(digests: digests, warnings: warnings)
    }

    /// The first key of a file that `init(file:)` accepts: the one to present to other services, since the others stay
    /// until every service has the new one. Nil when there is none. Throws as `init(file:)` does.
    public static func first(inFile path: String) throws(SecretFileError) -> String? {
        let (bytes, _) = try SecretFile.read(path)
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let key = trimmed(line)
            if !key.isEmpty { return String(decoding: key, as: UTF8.self) }
        }
        return nil
    }

    private init(digests: [SHA256Digest], warnings: [String]) {
        self.digests = digests
        self.warnings = warnings
    }

    /// Whether there is no key, so that no caller is an administrator.
    public var isEmpty: Bool { digests.isEmpty }

    /// Whether a credential is one of the keys, compared in constant time.
    public func contains(_ credential: String) -> Bool { contains(SHA256.hash(data: Array(credential.utf8))) }

    /// Compares every key, whichever matches, so that the duration reveals nothing.
    func contains(_ digest: SHA256Digest) -> Bool {
        var isFound = false
        for key in digests where key == digest { isFound = true }
        return isFound
    }

    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var line = line
        while let first = line.first, isSpace(first) { line.removeFirst() }
        while let last = line.last, isSpace(last) { line.removeLast() }
        return line
    }
}

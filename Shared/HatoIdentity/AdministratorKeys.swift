import Crypto

/// The keys that make a caller an administrator: every line of the file is one, so that keys can be rotated without
/// downtime.
///
/// Only digests are kept, and a credential is compared with all of them in constant time.
public struct AdministratorKeys: Sendable {
    /// The minimum length in bytes: a key is chosen once, and guessing it must be infeasible (protocol §2).
    public static let keyBytesMin = KeyLines.keyBytesMin

    private let digests: [SHA256Digest]
    /// Warnings for the operator that do not stop the start.
    public let warnings: [String]

    /// No key: no caller is an administrator.
    public static let none = AdministratorKeys([], warnings: [])

    /// Keys from memory, for tests and for a service that has just generated one. Nil when a key is too short.
    public init?(keys: [String]) {
        guard keys.allSatisfy({ $0.utf8.count >= Self.keyBytesMin }) else { return nil }
        self.init(keys, warnings: [])
    }

    /// Reads `path`: one key per line; blank lines and white space around keys are ignored. `SecretFileAccess` checks
    /// the file's owner and mode.
    /// Throws `SecretFileError` when the file cannot be read, others may read it, or a line is no key.
    public init(file path: String) throws(SecretFileError) {
        let lines = try KeyLines(file: path)
        self.init(lines.keys, warnings: lines.warnings)
    }

    /// The first key of a file that `init(file:)` accepts: the one to present to other services, since the others stay
    /// until every service has the new one. Nil when there is none. Throws as `init(file:)` does.
    public static func first(inFile path: String) throws(SecretFileError) -> String? {
        try KeyLines(file: path).keys.first
    }

    private init(_ keys: [String], warnings: [String]) {
        digests = keys.map { SHA256.hash(data: Array($0.utf8)) }
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
}

import Crypto
public import HatoModel

/// The keys with which other services call this one, each for the methods that it lists.
///
/// Only digests are kept, and a credential is compared with all of them in constant time.
public struct ServiceKeys: Sendable {
    /// A key, as its file declares it.
    public struct Entry: Sendable {
        /// For logs and errors.
        public var name: String
        /// The credential.
        public var key: String
        /// The methods that it may call, such as `auth.follow`.
        public var methods: Set<String>
        /// Whether it may speak as a user.
        public var mayUseAs: Bool

        public init(name: String, key: String, methods: Set<String>, mayUseAs: Bool = false) {
            self.name = name
            self.key = key
            self.methods = methods
            self.mayUseAs = mayUseAs
        }
    }

    private struct Known: Sendable {
        var digest: SHA256Digest
        var service: Caller.Service
    }

    private let known: [Known]

    /// No service has a key.
    public static let none = ServiceKeys(known: [])

    /// Throws `ArgumentError`, which names the entry, for two entries of one name or key and for a key that is too
    /// short; never with the key.
    public init(_ entries: [Entry]) throws(ArgumentError) {
        var known: [Known] = []
        for entry in entries {
            let digest = SHA256.hash(data: Array(entry.key.utf8))
            let bytesMin = AdministratorKeys.keyBytesMin
            guard entry.key.utf8.count >= bytesMin else {
                throw Self.problem(entry, "its key has \(entry.key.utf8.count) bytes, at least \(bytesMin) are needed")
            }
            for other in known {
                if other.service.name == entry.name { throw Self.problem(entry, "another entry has the same name") }
                if other.digest == digest {
                    throw Self.problem(entry, "\"\(other.service.name)\" has the same key; every service has its own")
                }
            }
            let service = Caller.Service(name: entry.name, methods: entry.methods, mayUseAs: entry.mayUseAs)
            known.append(Known(digest: digest, service: service))
        }
        self.init(known: known)
    }

    private init(known: [Known]) { self.known = known }

    /// The service that has a key of this digest. Compares every key, whichever matches, so that the duration reveals
    /// nothing.
    func service(_ digest: SHA256Digest) -> Caller.Service? {
        var found: Caller.Service?
        for key in known where key.digest == digest { found = key.service }
        return found
    }

    private static func problem(_ entry: Entry, _ text: String) -> ArgumentError {
        ArgumentError(reason: "invalid_service_key", "service key \"\(entry.name)\": \(text)")
    }
}

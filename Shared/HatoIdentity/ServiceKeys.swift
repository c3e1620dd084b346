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
        /// Whether its connections may speak for clients of other addresses.
        public var mayForward: Bool

        public init(
            name: String, key: String, methods: Set<String>, mayUseAs: Bool = false, mayForward: Bool = false
        ) {
            self.name = name
            self.key = key
            self.methods = methods
            self.mayUseAs = mayUseAs
            self.mayForward = mayForward
        }
    }

    private struct Known: Sendable {
        var digest: SHA256Digest
        var service: Caller.Service
    }

    private let known: [Known]

    /// No service has a key.
    public static let none = ServiceKeys(known: [])

    /// The methods of every caller, for its connection.
    private static let sessionPrefix = "session."

    /// Throws `ArgumentError`, which names the entry, for two entries of one name or key, for a key that is too short
    /// or an administrator's, and for methods that are for every caller; never with the key.
    ///
    /// - Parameter administrators: whose keys no service may have: it would be an administrator.
    public init(_ entries: [Entry], besides administrators: AdministratorKeys = .none) throws(ArgumentError) {
        var known: [Known] = []
        for entry in entries {
            let digest = SHA256.hash(data: Array(entry.key.utf8))
            let bytesMin = AdministratorKeys.keyBytesMin
            guard entry.key.utf8.count >= bytesMin else {
                throw Self.problem(entry, "its key has \(entry.key.utf8.count) bytes, at least \(bytesMin) are needed")
            }
            if let method = entry.methods.sorted().first(where: { $0.hasPrefix(Self.sessionPrefix) }) {
                let advice = method == Session.Forward.method ? ", and set forward: true" : ""
                throw Self.problem(entry, "\(method) is for every caller; leave it out of methods\(advice)")
            }
            guard !administrators.contains(digest) else {
                throw Self.problem(entry, "its key is an administrator key; every service has its own")
            }
            for other in known {
                if other.service.name == entry.name { throw Self.problem(entry, "another entry has the same name") }
                if other.digest == digest {
                    throw Self.problem(entry, "\"\(other.service.name)\" has the same key; every service has its own")
                }
            }
            let service = Caller.Service(
                name: entry.name, methods: entry.methods, mayUseAs: entry.mayUseAs, mayForward: entry.mayForward)
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

/// One operation of Firebase's account dialect, whatever path or version named it (spec auth §3-§5, §8).
public enum AuthOperation: String, Sendable, Hashable, CaseIterable {
    case signUp
    case signInWithPassword
    case signInWithCustomToken
    case signInWithEmailLink
    case signInWithIdp
    case lookup
    case update
    case delete
    case sendOobCode
    case resetPassword
    case createAuthUri
    case revokeToken
    case projectConfig
    case passwordPolicy
    case recaptchaConfig
    case recaptchaParams
    /// The token endpoint of securetoken.
    case token
    case createSessionCookie
    case batchCreate
    case batchDelete
    case batchGet
    case query
    case config
    case updateConfig
    /// The set of public keys (JWKS).
    case keys
    case openIDConfiguration
    /// The maps of x509 certificates, which exist for RS256 alone: 404.
    case certificates
    /// The page behind the links of mails.
    case actionPage
    /// The page behind the links of mails, whose form was sent.
    case actionForm
    /// `GET /`, by which tools find an emulator.
    case emulatorReady
    case emulatorDeleteAccounts
    case emulatorConfig
    case emulatorUpdateConfig
    case emulatorOobCodes
    case emulatorVerificationCodes
    /// The link of an emulator, which acts on GET.
    case emulatorAction
}

/// Where a request of the account dialect leads.
public struct AuthRoute: Sendable, Hashable {
    /// What the path names.
    public enum Target: Sendable, Hashable {
        case operation(AuthOperation)
        /// An operation of Firebase that does not exist here: 501 with its name.
        case unimplemented(String)
        /// A path of the account dialect that names nothing: 404.
        case notFound
    }

    /// The credential without which a request is refused.
    public enum Credential: Sendable, Hashable {
        case none
        /// An API key, or an administrator.
        case apiKey
        case administrator
    }

    /// What the path names.
    public var target: Target
    /// What the caller must show.
    public var credential: Credential
    /// The project in the path.
    public var project: String?

    init(_ target: Target, _ credential: Credential = .none, project: String? = nil) {
        self.target = target
        self.credential = credential
        self.project = project
    }

    /// The route of a request; nil for a path that is none of the account dialect.
    ///
    /// - Parameter path: as sent, without the query.
    /// - Parameter isEmulator: whether the paths of an emulator exist.
    public static func find(_ method: String, _ path: String, isEmulator: Bool) -> AuthRoute? {
        guard isPossible(path[...]) else { return nil }
        var segments = path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { AccountPercentCoding.decoded($0) }
        let hasHost = segments.first.map(AuthPaths.hosts.contains) ?? false
        if hasHost { segments.removeFirst() }
        // Nodes may have these names.
        guard hasHost || segments.first == ".well-known" || !path.hasSuffix(suffix) else { return nil }
        let paths = AuthPaths(method: method, isEmulator: isEmulator)
        if let route = paths.route(segments, hasHost: hasHost) { return route }
        return hasHost ? AuthRoute(.notFound) : nil
    }

    /// Whether a path may be one of the account dialect: most paths are those of nodes, whose first key has no dot.
    public static func isPossible(_ path: Substring) -> Bool {
        let bytes = path.utf8
        guard bytes.first == UInt8(ascii: "/") else { return false }
        guard bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else { return true }
        let first = bytes.dropFirst().prefix { $0 != UInt8(ascii: "/") }
        return first.count < bytes.count - 1 && first.contains { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }
    }

    /// Of the paths of nodes.
    private static let suffix = ".json"
}

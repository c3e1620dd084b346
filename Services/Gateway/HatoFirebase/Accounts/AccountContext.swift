/// What an account operation depends on besides its request.
public struct AccountContext: Sendable {
    /// The API keys that clients may show.
    public enum APIKeys: Sendable, Hashable {
        /// Any text that is not empty.
        case any
        case listed(Set<String>)

        func contain(_ key: String) -> Bool {
            switch self {
            case .any: !key.isEmpty
            case .listed(let keys): keys.contains(key)
            }
        }
    }

    /// The id of the project.
    public var project: String
    /// The number of the project, which Firebase's own clients only pass on.
    public var projectNumber = "12345"
    /// The API keys that clients may show.
    public var apiKeys = APIKeys.any
    /// Whether the gateway takes the words of an emulator (spec auth §8).
    public var isEmulator = false
    /// Scheme, host and port under which the client reached the gateway, for links: `http://127.0.0.1:7700`.
    public var origin: String
    /// 27 random letters and digits, new for each request.
    public var sessionId = ""
    /// Hosts, besides that of `origin`, which links of mails may have.
    public var linkDomains: Set<String> = []
    /// The bounds of requests.
    public var limits = AccountLimits()
    /// The codes that the gateway keeps in emulator mode.
    public var codes = OobCodeLog()

    /// A context without emulator, in which any API key is right.
    public init(project: String, origin: String) {
        self.project = project
        self.origin = origin
    }
}

/// The bounds of account operations.
public struct AccountLimits: Sendable, Hashable {
    /// Bytes of a body with accounts to import: what fits into a line of the service.
    public var importBytesMax = 12 << 20
    /// Bytes of a body of any other operation.
    public var bodyBytesMax = 256 << 10
    /// Bytes of a form of the pages behind links.
    public var formBytesMax = 64 << 10
    /// Bytes of memory that the values of a body may take for each byte of the longest body.
    public var bodyMemoryPerByteMax = 8
    /// Characters of an ID token or a refresh token; longer texts are none.
    public var tokenBytesMax = 16 << 10
    /// Identifiers of one look-up.
    public var identifiersMax = 100
    /// Accounts of one deletion or one import.
    public var accountsMax = 1_000
    /// Accounts before the first one of a query.
    public var queryOffsetMax = 1_000_000
    /// Codes of mails that an emulator keeps.
    public var codesMax = 1_000

    /// The default limits.
    public init() {}

    /// How many bytes a body may have.
    func bodyBytesMax(of route: AuthRoute) -> Int {
        route.target == .operation(.batchCreate) ? max(importBytesMax, bodyBytesMax) : bodyBytesMax
    }

    /// How many bytes of memory the values of a body may take.
    public func memoryMax(ofBody bytesMax: Int) -> Int {
        let (product, overflows) = bytesMax.multipliedReportingOverflow(by: bodyMemoryPerByteMax)
        return overflows ? .max : product
    }
}

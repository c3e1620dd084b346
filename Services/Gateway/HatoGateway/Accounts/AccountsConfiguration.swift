public import HatoFirebase
public import HatoRPC

/// With what a gateway serves Firebase Auth over HTTP.
public struct AccountsConfiguration: Sendable {
    /// Where auth listens.
    public var auth: RPCClientConfiguration
    /// The project's id.
    public var project: String
    /// The API keys that clients may show.
    public var apiKeys = AccountContext.APIKeys.any

    /// The accounts of a project, for clients with any API key.
    public init(auth: RPCClientConfiguration, project: String) {
        self.auth = auth
        self.project = project
    }
}

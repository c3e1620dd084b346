import HatoFirebase

/// The conventions of Firebase's emulators (spec auth §8): every client may be an administrator.
public struct EmulatorConfiguration: Sendable {
    /// What services take for an administrator.
    public var administratorKey: String
    /// Whether it may listen beyond this machine.
    public var listensBeyondLoopback = false

    /// The settings of an emulator that auth does not take, because it was started with others; known when the gateway
    /// has started.
    public private(set) var fixedSettings: [String] = []
    /// The codes of mails; as many as the limits allow when the gateway has started.
    private(set) var codes = EmulatorCodes(max: AccountLimits().codesMax)

    /// An emulator that acts with this key.
    public init(administratorKey: String) { self.administratorKey = administratorKey }

    /// Which requests it takes.
    var hosts: LoopbackHosts { LoopbackHosts(takesAddresses: listensBeyondLoopback) }

    /// Gives auth the settings of an emulator.
    ///
    /// - Throws: `GatewayStartError`.
    mutating func prepare(_ configuration: GatewayConfiguration) async throws {
        try check(host: configuration.host)
        guard let accounts = configuration.accounts else { throw GatewayStartError.emulatorWithoutAccounts }
        codes = EmulatorCodes(max: configuration.limits.accounts.codesMax)
        fixedSettings = try await EmulatorSettings.set(at: accounts.auth, administratorKey)
    }

    private func check(host: String) throws(GatewayStartError) {
        // Android's address of its host is none to listen on.
        guard listensBeyondLoopback || LoopbackHosts.isLoopback(host) && host != "10.0.2.2" else {
            throw .emulatorBeyondLoopback(host)
        }
    }
}

/// Why a gateway does not start.
public enum GatewayStartError: Error, Sendable, Hashable, CustomStringConvertible {
    /// An emulator would listen on this host.
    case emulatorBeyondLoopback(String)
    /// Auth did not take the settings of an emulator.
    case emulatorSettings(String)
    /// An emulator has no accounts to serve.
    case emulatorWithoutAccounts

    public var description: String {
        switch self {
        case .emulatorBeyondLoopback(let host):
            "an emulator gives every client all rights, and \(host) is beyond this machine: listen on 127.0.0.1, or "
                + "confirm with emulator-beyond-loopback"
        case .emulatorSettings(let problem): "auth does not take the settings of an emulator: \(problem)"
        case .emulatorWithoutAccounts: "an emulator needs the address of auth"
        }
    }
}

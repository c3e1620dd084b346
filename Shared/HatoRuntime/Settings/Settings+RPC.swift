import Foundation
public import HatoModel
public import HatoRPC

extension ServeSettings {
    /// A limit of the transport and the setting that changes it.
    private struct Limit: Sendable {
        var name: String
        var field: @Sendable (inout RPCLimits, Int?) -> Int
        /// The accepted values.
        var range: ClosedRange<Int>
        var help: String
        /// How the default is derived from `memory-bytes`.
        var memory: MemoryDerivation?

        func following(_ memory: MemoryDerivation) -> Limit {
            var limit = self
            limit.memory = memory
            return limit
        }
    }

    private typealias LimitPath = WritableKeyPath<RPCLimits, Int> & Sendable

    private static let bytes = 1...(1 << 40)
    /// The range for the size of one buffer.
    private static let bufferBytes = 1...(1 << 30)
    private static let counts = 1...1_000_000_000
    private static let seconds = 1...315_360_000
    /// The range that the operating system accepts for TCP keep-alive times and counts.
    private static let keepAliveSeconds = 1...32_767

    /// Returns the value of a limit, after setting it when a value is given.
    private static func limit(
        _ name: String, _ path: any LimitPath, _ range: ClosedRange<Int>, _ help: String
    ) -> Limit {
        Limit(
            name: name,
            field: { limits, value in
                if let value { limits[keyPath: path] = value }
                return limits[keyPath: path]
            }, range: range, help: help)
    }

    static let processBytesInFlight = "process-bytes-in-flight-max"
    static let clientBytesInFlight = "client-bytes-in-flight-max"

    private static let rpcLimits: [Limit] = [
        limit("line-bytes-max", \.lineBytesMax, bufferBytes, "longest line, in bytes"),
        limit(
            "unauthenticated-line-bytes-max", \.unauthenticatedLineBytesMax, bufferBytes,
            "longest line before a credential was shown"),
        limit("credential-bytes-max", \.credentialBytesMax, bufferBytes, "longest credential in auth, in bytes"),
        limit("nesting-max", \.nestingMax, 1...512, "arrays and objects inside each other"),
        limit("batch-entries-max", \.batchEntriesMax, counts, "entries of one batch"),
        limit(
            "requests-in-flight-max", \.requestsInFlightMax, counts, "requests of one connection worked on at a time"),
        limit("reads-in-flight-max", \.readsInFlightMax, counts, "those among them that read"),
        limit(
            "unreserved-read-bytes-max", \.unreservedReadBytesMax, bufferBytes,
            "what a read may take without waiting for memory, in bytes"),
        limit("large-reads-running-max", \.largeReadsRunningMax, counts, "reads beyond that which run at a time"),
        limit(
            "connection-bytes-in-flight-max", \.connectionBytesInFlightMax, bytes,
            "bytes of unanswered requests of one connection"),
        limit(
            processBytesInFlight, \.processBytesInFlightMax, bytes, "the same over all connections"
        ).following(MemoryDerivation(.requests)),
        limit(
            clientBytesInFlight, \.clientBytesInFlightMax, bytes,
            "what one user, or one address that is not signed in, holds of it"
        ).following(MemoryDerivation(.requests, dividedBy: 4)),
        limit("response-bytes-max", \.responseBytesMax, bufferBytes, "largest response, in bytes"),
        limit(
            "unsent-response-bytes-max", \.unsentResponseBytesMax, bufferBytes,
            "responses not taken by a peer, in bytes"),
        limit(
            "unsent-notification-bytes-max", \.unsentNotificationBytesMax, bufferBytes,
            "notifications a peer has not taken, in bytes"),
        limit("connections-max", \.connectionsMax, counts, "connections in all"),
        limit(
            "connections-without-credential-percent-max", \.connectionsWithoutCredentialPercentMax, 1...100,
            "percent of connections-max that connections without a credential hold; beyond, the longest silent one "
                + "is closed for a new one"),
        limit(
            "connections-per-address-max", \.connectionsPerAddressMax, counts,
            "connections from one address, of IPv6 its /64"),
        limit(
            "connections-per-user-max", \.connectionsPerUserMax, counts,
            "connections of one user that are never closed for another; further ones count as those without a credential"
        ),
        limit("idle-seconds-max", \.idleSecondsMax, seconds, "seconds without traffic before a connection is closed"),
        limit("handshake-seconds-max", \.handshakeSecondsMax, seconds, "seconds a TLS handshake may take"),
        limit(
            "stalled-line-seconds-max", \.stalledLineSecondsMax, seconds,
            "seconds after which a long line that hardly grows is cut off, when others wait for memory"),
        limit(
            "stalled-line-bytes-per-second", \.stalledLineBytesPerSecond, counts, "how much such a line has to grow"),
        limit(
            "awaited-line-seconds-max", \.awaitedLineSecondsMax, seconds,
            "seconds in which the memory reserved for such a line has to fill"),
        limit(
            "stalled-peer-seconds-max", \.stalledPeerSecondsMax, seconds,
            "seconds after which a peer that hardly takes its responses is cut off, when others wait for memory"),
        limit(
            "stalled-peer-bytes-per-second", \.stalledPeerBytesPerSecond, counts, "how much such a peer has to take"),
        limit(
            "parked-read-seconds-max", \.parkedReadSecondsMax, seconds,
            "seconds after which such a peer is cut off when large reads of its own wait for it"),
        limit(
            "awaited-event-seconds-max", \.awaitedEventSecondsMax, seconds,
            "seconds in which a peer has to take the events it holds, when others wait for the memory of events"),
        limit(
            "keep-alive-idle-seconds", \.keepAliveIdleSeconds, keepAliveSeconds,
            "seconds of silence before TCP asks the peer"),
        limit(
            "keep-alive-interval-seconds", \.keepAliveIntervalSeconds, keepAliveSeconds,
            "seconds between TCP's questions"),
        limit("keep-alive-probes", \.keepAliveProbes, 1...127, "probes without a response that end a connection"),
    ]

    /// The limits of the transport (protocol §1) and the number of event loops, as settings.
    public static var wire: [Setting] {
        var limits = RPCLimits()
        let loops = Setting("event-loops", .integer(1...256), default: "2", help: "threads that serve connections")
        return [loops]
            + rpcLimits.map { limit in
                let setting = Setting(
                    limit.name, .integer(limit.range), default: String(limit.field(&limits, nil)), help: limit.help)
                return limit.memory.map { setting.following($0) } ?? setting
            }
    }

    /// For services that call others: the address of a peer.
    public static func peer(_ service: String, defaultPort: Int) -> Setting {
        Setting(service, .address, default: "127.0.0.1:\(defaultPort)", help: "where \(service) listens")
    }

    /// TLS of links to peers.
    public static let peerTLS = [
        Setting("peer-tls", .flag, default: "false", shared: true, help: "use TLS on links to other services"),
        Setting(
            "peer-tls-ca", .file, shared: true,
            help: "authorities in PEM that peers must be signed by; the system's unless set"),
        Setting("peer-tls-certificate", .file, shared: true, help: "certificate in PEM to show to peers"),
        Setting("peer-tls-key", .file, shared: true, help: "private key of that certificate in PEM"),
    ]

    /// Describes the problem when a read of the largest response cannot reserve its memory; nil when it can. Large
    /// reads take at most three quarters of the budget.
    static func readsProblem(_ settings: Settings) -> String? {
        guard settings.text("response-bytes-max") != nil, settings.text(processBytesInFlight) != nil else { return nil }
        let (response, budget) = (settings.integer("response-bytes-max"), settings.integer(processBytesInFlight))
        guard response > budget - budget / 4 else { return nil }
        return "setting response-bytes-max: a response of \(response) bytes does not fit into three quarters of "
            + "\(processBytesInFlight), which is \(budget); make it smaller, or \(processBytesInFlight) larger"
    }

    static func limits(_ settings: Settings) -> RPCLimits {
        var limits = RPCLimits()
        for limit in rpcLimits where settings.text(limit.name) != nil {
            _ = limit.field(&limits, settings.integer(limit.name))
        }
        return limits
    }
}

extension ServiceProcess.Start {
    /// The configuration of the service's server from the settings. Throws `SettingsError` when only half of TLS is
    /// given.
    public func serverConfiguration(version: String) throws -> RPCServerConfiguration {
        var configuration = RPCServerConfiguration(service: service, version: version)
        configuration.host = settings["host"]
        configuration.port = settings.integer("port")
        configuration.limits = ServeSettings.limits(settings)
        if let openFiles {
            configuration.limits.connectionsMax = min(configuration.limits.connectionsMax, openFiles.connectionsMax)
        }
        configuration.loops = max(1, settings.integer("event-loops"))
        configuration.metrics = metricsText
        configuration.settings = { [settings] in settings.shownAsJSON }
        switch (settings.text("tls-certificate"), settings.text("tls-key")) {
        case (let certificate?, let key?):
            try checkPrivateKey("tls-key")
            configuration.tls = RPCServerTLS(
                certificateFile: certificate, keyFile: key, clientAuthorityFile: settings.text("tls-client-ca"))
        case (nil, nil):
            guard settings.text("tls-client-ca") == nil else {
                throw SettingsError("tls-client-ca needs tls-certificate and tls-key")
            }
        default:
            throw SettingsError("tls-certificate and tls-key go together: one is missing")
        }
        return configuration
    }

    /// The configuration of a link to the peer at the address setting `name`. Throws `SettingsError` when the setting
    /// is missing.
    public func clientConfiguration(to name: String) throws -> RPCClientConfiguration {
        guard let address = settings.address(name) else {
            throw SettingsError("setting \(name) is missing: give --\(name) HOST:PORT")
        }
        var configuration = RPCClientConfiguration(host: address.host, port: address.port)
        if settings.flag("peer-tls") {
            try checkPrivateKey("peer-tls-key")
            let tls = RPCClientTLS(
                authorityFile: settings.text("peer-tls-ca"), certificateFile: settings.text("peer-tls-certificate"),
                keyFile: settings.text("peer-tls-key"))
            do { try tls.check() } catch let error as TLSFileError { throw SettingsError(error, "peer-tls") }
            configuration.tls = tls
        }
        return configuration
    }
}

extension SettingsError {
    /// The error for a TLS file that a setting with this prefix names.
    init(_ error: TLSFileError, _ prefix: String) {
        let name =
            switch error.part {
            case .certificate: "\(prefix)-certificate"
            case .key: "\(prefix)-key"
            case .authority: prefix == "tls" ? "tls-client-ca" : "\(prefix)-ca"
            }
        self.init("setting \(name): \(error)")
    }

    /// The error for an address that cannot be listened on; it names the settings with that port.
    init(cannotListen error: RPCServerError, port: Int, _ settings: Settings) {
        let names = settings.entries.map(\.setting.name).filter {
            ($0 == "port" || $0.hasSuffix("-port")) && settings.text($0) == "\(port)"
        }
        self.init(
            "setting \((names + [names == ["metrics-port"] ? ServeSettings.metricsHost : "host"]).joined(separator: " or ")): \(error)"
        )
    }
}

extension Settings {
    /// `{"port":{"value":"7702","source":"default"},…}`, secrets hidden.
    public var shownAsJSON: JSONValue {
        var object = JSONObject()
        for (name, value, source) in shown {
            object.append(name, ["value": value.map { .string($0) } ?? .null, "source": .string(source)])
        }
        return .object(object)
    }
}

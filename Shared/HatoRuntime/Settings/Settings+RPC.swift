import Foundation
public import HatoModel
public import HatoRPC

extension ServeSettings {
    static let processBytesInFlight = "process-bytes-in-flight-max"
    static let clientBytesInFlight = "client-bytes-in-flight-max"

    /// What follows from `memory-bytes`.
    private static let memoryDerivations = [
        processBytesInFlight: MemoryDerivation(.requests),
        clientBytesInFlight: MemoryDerivation(.requests, dividedBy: 4),
        "process-event-bytes-max": MemoryDerivation(.events),
    ]

    /// The limits of the transport (protocol §1) and the number of event loops, as settings.
    public static var wire: [Setting] {
        [eventLoops]
            + RPCLimits.all.map { limit in
                let setting = Setting(limit)
                return memoryDerivations[limit.name].map { setting.following($0) } ?? setting
            }
    }

    /// The number of event loops.
    public static let eventLoops = Setting(
        "event-loops", .integer(1...256), default: "2", help: "threads that serve connections")

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

    static func limits(_ settings: Settings) -> RPCLimits { settings.limits(RPCLimits.self) }
}

extension ServiceProcess.Start {
    /// The configuration of the service's server from the settings. Throws `SettingsError` when only half of TLS is
    /// given.
    public func serverConfiguration(version: String) throws -> RPCServerConfiguration {
        var configuration = RPCServerConfiguration(service: service, version: version)
        configuration.host = settings["host"]
        configuration.port = settings.integer("port")
        configuration.limits = ServeSettings.limits(settings)
        configuration.limits.connectionsMax = connectionsMax(wanted: configuration.limits.connectionsMax)
        configuration.loops = max(1, settings.integer(ServeSettings.eventLoops.name))
        configuration.metrics = metricsText
        configuration.settings = { [settings] in settings.shownAsJSON }
        configuration.tls = try serverTLS()
        return configuration
    }

    /// So many connections as are wanted, and as the limit of open files allows.
    public func connectionsMax(wanted: Int) -> Int { min(wanted, openFiles?.connectionsMax ?? wanted) }

    /// The files of TLS from the settings; nil: plain connections. Throws `SettingsError` when only half of TLS is
    /// given.
    public func serverTLS() throws -> RPCServerTLS? {
        switch (settings.text("tls-certificate"), settings.text("tls-key")) {
        case (let certificate?, let key?):
            try checkPrivateKey("tls-key")
            return RPCServerTLS(
                certificateFile: certificate, keyFile: key, clientAuthorityFile: settings.text("tls-client-ca"))
        case (nil, nil):
            guard settings.text("tls-client-ca") == nil else {
                throw SettingsError("tls-client-ca needs tls-certificate and tls-key")
            }
            return nil
        default:
            throw SettingsError("tls-certificate and tls-key go together: one is missing")
        }
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

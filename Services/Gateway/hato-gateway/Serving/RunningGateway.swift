import Foundation
import HatoGateway
import HatoModel
import HatoRPC
import HatoRuntime

/// The gateway, as the process sees it.
struct RunningGateway: RunningService {
    private let server: GatewayServer
    private let isEmulator: Bool

    static func start(_ start: ServiceProcess.Start) async throws -> any RunningService {
        let settings = start.settings
        guard let key = try start.outgoingKey(missing: "the gateway cannot speak for its clients") else {
            throw SettingsError(
                "setting outgoing-key-file is missing: give the file of a key that the services list with forward: true"
            )
        }
        var configuration = GatewayConfiguration(
            messages: try start.clientConfiguration(to: "messages"), forwardKey: key,
            now: { Int64(Date().timeIntervalSince1970 * 1_000) })
        configuration.auth = try start.clientConfiguration(to: "auth")
        configuration.notifier = try start.clientConfiguration(to: "notifier")
        configuration.host = settings["host"]
        configuration.port = settings.integer("port")
        configuration.loops = settings.integer(ServeSettings.eventLoops.name)
        configuration.tls = try start.serverTLS()
        configuration.limits = settings.limits(GatewayLimits.self)
        configuration.limits.connectionsMax = start.connectionsMax(wanted: configuration.limits.connectionsMax)
        try GatewaySettings.setTrust(settings, of: &configuration)
        configuration.logsRequests = settings.flag(GatewaySettings.accessLog.name)
        configuration.accounts = try GatewaySettings.accounts(start)
        configuration.emulator = try GatewaySettings.emulator(start)
        configuration.namespaces = try GatewaySettings.namespaces(settings)
        do {
            let server = try await GatewayServer.start(configuration, logger: start.logger)
            start.beforeScrape { await server.refreshFigures() }
            return RunningGateway(server: server, isEmulator: configuration.emulator != nil)
        } catch let error as GatewayStartError {
            throw SettingsError("setting emulator: \(error)")
        }
    }

    var announcement: JSONObject {
        var line: JSONObject = [
            "service": .string(GatewayTarget.service),
            "listening": .string("\(ServiceAddress(host: server.host, port: server.port))"),
        ]
        if isEmulator {
            line["emulator"] = true
            line["settingsOfAuth"] = .array(server.fixedSettings.map { .string($0) })
        }
        return line
    }

    func shutdown(grace: Duration) async { await server.shutdown(grace: grace) }

    func failure() async -> String? {
        // It has nothing that could fail for good: services that are away come back.
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(86_400)) }
        return nil
    }
}

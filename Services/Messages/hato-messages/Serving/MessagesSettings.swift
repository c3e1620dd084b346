import HatoMessages
import HatoModel
import HatoRuntime

/// The settings of `hato-messages serve`.
enum MessagesSettings {
    static let process = ServiceProcess(
        service: MessagesTarget.service,
        declared: ServeSettings.declared(defaultPort: MessagesTarget.port) + own + ServeSettings.peerTLS
            + limits)

    private static let own = [
        Setting("auth", .address, required: true, help: "where the auth service listens: its keys verify ID tokens"),
        ServeSettings.outgoingKey,
        ServeSettings.profiles,
        Setting(
            "first-rules", .choice(["deny", "signed-in"]), default: "deny",
            help: "rules of the first database of a new store: deny everything, or let signed-in users read and write"),
        Setting(
            "slow-operation-paths", .choice(["shape", "whole"]), default: "shape",
            help: "keys of a path that the log of slow operations shows: those that rules name, or all"),
    ]

    private static let limits: [Setting] = MessagesLimits.all.map { limit in
        let setting = Setting(limit)
        return memory[limit.name].map { setting.following($0) } ?? setting
    }

    /// The limits that follow from `memory-bytes`.
    private static let memory = [
        "listeners-client-bytes-max": MemoryDerivation(.listeners, dividedBy: 4),
        "listeners-service-bytes-max": MemoryDerivation(.listeners),
        "on-disconnect-client-bytes-max": MemoryDerivation(.onDisconnect, dividedBy: 4),
        "on-disconnect-service-bytes-max": MemoryDerivation(.onDisconnect),
        // Two writes are prepared at a time, with some 250 bytes a value.
        "write-values-max": MemoryDerivation(.requests, dividedBy: 512, atMost: MessagesLimits().writeValuesMax),
    ]

    /// The limits with the values of the settings.
    static func limits(_ settings: Settings) -> MessagesLimits {
        settings.limits(MessagesLimits.self)
    }

    /// Where profiles are kept; nil: nowhere. Throws `SettingsError`.
    static func profiles(_ settings: Settings) throws(SettingsError) -> ProfilePlace? {
        let name = ServeSettings.profiles.name
        guard let text = settings.text(name) else { return nil }
        let key = ServeSettings.outgoingKey.name
        guard settings.text(key) != nil else {
            throw SettingsError("setting \(name) needs \(key): profiles come from auth, which asks for a key")
        }
        do { return try ProfilePlace(text) } catch { throw SettingsError("setting \(name): \(error.message)") }
    }
}

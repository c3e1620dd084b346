public import HatoRPC

/// Divides the request budget of one process that runs auth, messages and notifier: an eighth each for auth and
/// notifier, at least the size of the longest line and the largest response, and the rest for messages. Pure.
public struct StackMemory: Sendable, Hashable {
    /// The bytes of auth, and of notifier.
    public let otherBytes: Int
    /// The bytes of messages.
    public let messagesBytes: Int

    /// - Parameters:
    ///   - requestBytes: the budget of all three services.
    ///   - requestBytesMin: the minimum that one service needs for its requests.
    public init(requestBytes: Int, requestBytesMin: Int) {
        otherBytes = max(requestBytes / 8, min(requestBytesMin, requestBytes / 3))
        messagesBytes = requestBytes - 2 * otherBytes
    }

    /// The limits of one service; limits that were set, and are not derived from `memory-bytes`, apply to each of them.
    /// Throws `SettingsError` when the memory is too small for three services.
    public static func limits(
        of service: String, _ settings: Settings, from limits: RPCLimits
    ) throws -> RPCLimits {
        guard settings.followsFromMemory(ServeSettings.processBytesInFlight) else { return limits }
        let wanted = limits.lineBytesMax + limits.responseBytesMax
        let memory = StackMemory(requestBytes: limits.processBytesInFlightMax, requestBytesMin: wanted)
        guard memory.messagesBytes >= wanted else {
            throw SettingsError(ServeSettings.tooLittleMemory(settings, wanted: 3 * wanted, services: 3))
        }
        var limits = limits
        limits.processBytesInFlightMax = service == "messages" ? memory.messagesBytes : memory.otherBytes
        if settings.followsFromMemory(ServeSettings.clientBytesInFlight) {
            limits.clientBytesInFlightMax = limits.processBytesInFlightMax / 4
        }
        return limits
    }
}

public import HatoRPC

/// How one process that runs auth, messages and notifier divides its budget of requests among them: an eighth each for
/// auth and notifier, at least what the longest line and the largest response take, and the rest for messages. Pure.
public struct StackMemory: Sendable, Hashable {
    /// Of each of auth and notifier.
    public let otherBytes: Int
    /// Memory of messages, in bytes.
    public let messagesBytes: Int

    /// - Parameters:
    ///   - requestBytes: the budget of all of them.
    ///   - requestBytesMin: what one service needs for its requests.
    public init(requestBytes: Int, requestBytesMin: Int) {
        otherBytes = max(requestBytes / 8, min(requestBytesMin, requestBytes / 3))
        messagesBytes = requestBytes - 2 * otherBytes
    }

    /// The limits of one service; those that were set, and do not follow from `memory-bytes`, hold for each of them.
    /// Throws `SettingsError` when too little memory is given for three services.
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

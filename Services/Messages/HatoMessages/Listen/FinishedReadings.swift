import HatoRPC

/// What was read for listeners of a topic and is still being sent to some of them: a listener that lacks the same
/// before the topic changes is sent the same bytes, unread. Keeps none of them in memory itself. Pure.
struct FinishedReadings {
    private struct Reading {
        var version: UInt64
        var members: EncodedJSON.Reference
    }

    private var readings: [ListenerReading.Wanted: Reading] = [:]
    /// The number of entries from which those are looked for that are sent to no listener any more.
    private var sweepCount = 8

    /// What is small is not shared, and costs little to read again.
    mutating func add(_ wanted: ListenerReading.Wanted, _ members: EncodedJSON, at version: UInt64) {
        guard let reference = members.reference else { return }
        readings[wanted] = Reading(version: version, members: reference)
        guard readings.count >= sweepCount else { return }
        readings = readings.filter { $0.value.members.value != nil }
        sweepCount = max(8, 2 * readings.count)
    }

    /// What was read as of `oldest` or later.
    func members(_ wanted: ListenerReading.Wanted, from oldest: UInt64) -> (EncodedJSON, version: UInt64)? {
        guard let found = readings[wanted], found.version >= oldest, let members = found.members.value else {
            return nil
        }
        return (members, found.version)
    }
}

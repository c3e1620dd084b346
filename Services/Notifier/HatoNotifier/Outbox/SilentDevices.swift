import HatoModel
import HatoStorage

/// Phones and browsers whose app has not shown itself for long, and receivers of actions that none names any more.
struct SilentDevices {
    let outbox: Outbox

    /// Devices that are looked at in one read.
    private static let pageMax = 500

    /// Removes phones and browsers that were not registered again for `deviceSilence`, with what waits for them.
    /// Webhooks of users stay: they are registered once, and are disabled when they fail.
    func remove() async throws {
        var (after, receivers): (RecordKey?, [RecordKey]) = (nil, [])
        while true {
            let latest = outbox.time.now() - outbox.policy.deviceSilence.milliseconds
            let (keys, silent, found) = try await outbox.store.read { [after] snapshot in
                let rows = try snapshot.rows(RecordKey(.device), after: after, limit: Self.pageMax)
                let devices = rows.compactMap { row in
                    try? RecordCodec.decode(DeviceRecord.self, row.value, key: row.key.bytes)
                }
                let silent = devices.filter { $0.isSilent(since: latest) }
                return (rows.map(\.key), silent.map(\.key), devices.filter(\.isReceiver).map(\.key))
            }
            receivers += found
            if !silent.isEmpty {
                let gone = try await outbox.change { draft in
                    try silent.compactMap { key -> String? in
                        // It may have been registered again meanwhile.
                        guard let device = try draft.transaction.readable(DeviceRecord.self, key),
                            device.isSilent(since: latest)
                        else { return nil }
                        device.delete(in: &draft.writes)
                        return device.device
                    }
                }
                outbox.metrics.devicesRemoved(gone.count, because: .silent)
                for device in gone { try await outbox.dropDeliveries(of: device) }
            }
            guard keys.count == Self.pageMax, let last = keys.last else { break }
            after = last
        }
        try await UnnamedReceivers(outbox: outbox).remove(among: receivers)
    }
}

extension DeviceRecord {
    fileprivate func isSilent(since latest: Int64) -> Bool { platform != .webhook && lastSeen < latest }
}

import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Tokens that are named in place of devices: one that no device has gets a device without a user, so that it has a
/// place for its deliveries and is known once it is gone.
extension Outbox {
    /// The devices that have these tokens; where none has, the one that is given.
    func devices(of forms: [DeviceRecord]) async throws -> [DeviceRecord] {
        guard !forms.isEmpty else { return [] }
        let now = time.now()
        let known = try await store.read { snapshot in
            try forms.map { form in
                try snapshot.device(at: form.addressKey).flatMap { $0.isUsedBefore(now) ? nil : $0 }
            }
        }
        // Most were used today.
        if !known.contains(nil) { return known.compactMap(\.self) }
        let devices = try await change { try $0.devices(of: forms) }
        await usedTokens(forms.count)
        return devices
    }

    /// Deletes the devices without users that were used the longest time ago, once in a while, when there are too many:
    /// any user that may write what a trigger takes for a token can make some.
    func usedTokens(_ count: Int) async {
        let countMax = limits.tokenDevicesMax
        let most = max(1, countMax / 16)
        guard tokensUsed.add(count, ordering: .relaxed).newValue >= most else { return }
        tokensUsed.store(0, ordering: .relaxed)
        do {
            while true {
                let oldest = try await store.read { snapshot -> [RecordKey] in
                    let excess = try snapshot.count(.tokenDevice) - countMax
                    guard excess > 0 else { return [] }
                    return try snapshot.keys(
                        RecordKey(.tokenDevice), limit: min(excess, OutboxDraft.writesMax / 4))
                }
                guard !oldest.isEmpty else { return }
                try await change { draft in for key in oldest { try draft.forgetTokenDevice(key) } }
            }
        } catch {
            // What used them is done all the same; the next use tries again.
            tokensUsed.store(most, ordering: .relaxed)
            notices.notice(
                .refusedByStore, "devices without users cannot be deleted", ["error": "\(error)"], level: .error)
        }
    }
}

extension DeviceRecord {
    /// So often it is written down that a token is used, in milliseconds.
    private static let day: Int64 = 24 * 3_600_000

    /// Whether it is a token without a user that was not used for a day.
    fileprivate func isUsedBefore(_ now: Int64) -> Bool {
        uid.isEmpty && state == .active && now - lastSeen > DeviceRecord.day
    }
}

extension DeviceRecord {
    /// Whether a device that is gone stays as a disabled one: a token without a user would come back with the next
    /// change that names it. One that was refused goes, since that may be our mistake.
    func staysKnown(after outcome: DeliveryOutcome) -> Bool {
        guard uid.isEmpty, case .deviceGone = outcome else { return false }
        return true
    }
}

extension OutboxDraft {
    /// The devices that have these tokens, in their order; where none has, the one that is given.
    mutating func devices(of forms: [DeviceRecord]) throws -> [DeviceRecord] {
        var known: [RecordKey: DeviceRecord] = [:]
        return try forms.map { form in
            if let device = known[form.addressKey] { return device }
            let device = try device(of: form)
            known[form.addressKey] = device
            return device
        }
    }

    private mutating func device(of form: DeviceRecord) throws -> DeviceRecord {
        guard var device = try transaction.device(at: form.addressKey) else {
            writes.put(form.key, form)
            writes.put(form.addressKey, bytes: Array(form.device.utf8))
            if let key = form.tokenKey { writes.put(key) }
            return form
        }
        guard device.isUsedBefore(now) else { return device }
        if let key = device.tokenKey { writes.delete(key) }
        device.seenAt = now
        writes.put(device.key, device)
        if let key = device.tokenKey { writes.put(key) }
        return device
    }

    fileprivate mutating func forgetTokenDevice(_ key: RecordKey) throws {
        writes.delete(key)
        var reader = RecordKeyReader(key.bytes)
        guard reader.number() != nil, let name = reader.text(),
            let device = try transaction.readable(DeviceRecord.self, DeviceRecord.key(name)), device.tokenKey == key
        else { return }
        device.delete(in: &writes)
    }
}

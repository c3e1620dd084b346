import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Tokens that are named in place of devices: one that no device has gets a device without a user, so that it has a
/// place for its deliveries and is known once it is gone.
struct TokenDevices: Sendable {
    let outbox: Outbox

    /// The devices that have these tokens; where none has, the one that is given.
    func devices(of forms: [DeviceRecord]) async throws -> [DeviceRecord] {
        guard !forms.isEmpty else { return [] }
        let now = outbox.time.now()
        let known = try await outbox.store.read { snapshot in
            try forms.map { form in
                try snapshot.device(at: form.addressKey).flatMap { $0.isUsedBefore(now) ? nil : $0 }
            }
        }
        // Most were used today.
        if !known.contains(nil) { return known.compactMap(\.self) }
        let devices = try await outbox.change { try Self.take(forms, in: &$0) }
        await used(forms.count)
        return devices
    }

    /// Deletes the devices without users that were used the longest time ago, once in a while, when there are too many:
    /// any user that may write what a trigger takes for a token can make some.
    func used(_ count: Int) async {
        let countMax = outbox.limits.tokenDevicesMax
        let most = max(1, countMax / 16)
        guard outbox.tokensUsed.add(count, ordering: .relaxed).newValue >= most else { return }
        outbox.tokensUsed.store(0, ordering: .relaxed)
        do {
            while true {
                let oldest = try await outbox.store.read { snapshot -> [RecordKey] in
                    let excess = try snapshot.count(.tokenDevice) - countMax
                    guard excess > 0 else { return [] }
                    return try snapshot.keys(RecordKey(.tokenDevice), limit: min(excess, OutboxDraft.writesMax / 4))
                }
                guard !oldest.isEmpty else { return }
                try await outbox.change { draft in for key in oldest { try Self.forget(key, in: &draft) } }
            }
        } catch {
            // What used them is done all the same; the next use tries again.
            outbox.tokensUsed.store(most, ordering: .relaxed)
            outbox.notices.notice(
                .refusedByStore, "devices without users cannot be deleted", ["error": "\(error)"], level: .error)
        }
    }

    /// The devices that have these tokens, in their order; where none has, the one that is given.
    static func take(_ forms: [DeviceRecord], in draft: inout OutboxDraft) throws -> [DeviceRecord] {
        var known: [RecordKey: DeviceRecord] = [:]
        return try forms.map { form in
            if let device = known[form.addressKey] { return device }
            let device = try take(form, in: &draft)
            known[form.addressKey] = device
            return device
        }
    }

    private static func take(_ form: DeviceRecord, in draft: inout OutboxDraft) throws -> DeviceRecord {
        guard let device = try draft.transaction.device(at: form.addressKey) else {
            draft.writes.put(form.key, form)
            draft.writes.put(form.addressKey, bytes: Array(form.device.utf8))
            if let key = form.tokenKey { draft.writes.put(key) }
            return form
        }
        guard device.isUsedBefore(draft.now) else { return device }
        if let key = device.tokenKey { draft.writes.delete(key) }
        let used = device.used(at: draft.now)
        draft.writes.put(used.key, used)
        if let key = used.tokenKey { draft.writes.put(key) }
        return used
    }

    private static func forget(_ key: RecordKey, in draft: inout OutboxDraft) throws {
        draft.writes.delete(key)
        var reader = RecordKeyReader(key.bytes)
        guard reader.number() != nil, let name = reader.text(),
            let device = try draft.transaction.readable(DeviceRecord.self, DeviceRecord.key(name)),
            device.tokenKey == key
        else { return }
        device.delete(in: &draft.writes)
    }
}

extension DeviceRecord {
    /// So often it is written down that a token is used, in milliseconds.
    private static let day: Int64 = 24 * 3_600_000

    /// Whether it is a token without a user that was not used for a day.
    fileprivate func isUsedBefore(_ now: Int64) -> Bool {
        uid.isEmpty && state == .active && now - lastSeen > DeviceRecord.day
    }

    /// Whether a device that is gone stays as a disabled one: a token without a user would come back with the next
    /// change that names it. One that was refused goes, since that may be our mistake.
    func staysKnown(after outcome: DeliveryOutcome) -> Bool {
        guard uid.isEmpty, case .deviceGone = outcome else { return false }
        return true
    }
}

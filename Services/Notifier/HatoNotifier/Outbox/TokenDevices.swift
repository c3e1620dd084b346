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

    /// Deletes devices without users when there are too many, from time to time: first those that are gone, then those
    /// that were used the longest time ago. Any user that may write what a trigger takes for a token can make some. One
    /// with deliveries that wait stays: nothing that was accepted is lost.
    func used(_ count: Int) async {
        let countMax = outbox.limits.tokenDevicesMax
        let most = max(1, countMax / 16)
        guard outbox.tokensUsed.add(count, ordering: .relaxed).newValue >= most else { return }
        outbox.tokensUsed.store(0, ordering: .relaxed)
        do {
            var excess = try await outbox.store.read { try $0.count(.tokenDevice) } - countMax
            var (last, removed): (RecordKey?, Int) = (nil, 0)
            while excess > 0 {
                let page = try await outbox.store.read { [last, excess] snapshot in
                    try snapshot.rows(
                        RecordKey(.tokenDevice), after: last, limit: min(excess, OutboxDraft.writesMax / 4)
                    ).map(\.key)
                }
                guard !page.isEmpty else { break }
                let gone = try await outbox.change { draft in
                    try page.count { try Self.forget($0, in: &draft) }
                }
                (last, excess, removed) = (page.last, excess - gone, removed + gone)
            }
            outbox.metrics.devicesRemoved(removed, because: .excess)
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

    /// Returns whether the row went.
    private static func forget(_ key: RecordKey, in draft: inout OutboxDraft) throws -> Bool {
        var reader = RecordKeyReader(key.bytes)
        guard reader.number() != nil, let name = reader.text() else { return false }
        guard try draft.transaction.rows(RecordKey(.lane).with(name), limit: 1).isEmpty else { return false }
        draft.writes.delete(key)
        guard let device = try draft.transaction.readable(DeviceRecord.self, DeviceRecord.key(name)),
            device.tokenKey == key
        else { return true }
        device.delete(in: &draft.writes)
        return true
    }
}

extension DeviceRecord {
    /// So often it is written down that a token is used, in milliseconds.
    private static let day: Int64 = 24 * 3_600_000

    /// Whether it is a token without a user that was not used for a day. One that is gone is tried again then: the app
    /// may have been installed again.
    fileprivate func isUsedBefore(_ now: Int64) -> Bool { uid.isEmpty && now - lastSeen > DeviceRecord.day }

    /// Whether a device that is gone stays as a disabled one: a token without a user would come back with the next
    /// change that names it. One that was refused goes, since that may be our mistake, and so does a text that is no
    /// token (400), of which there may be any number.
    func staysKnown(after outcome: DeliveryOutcome) -> Bool {
        guard uid.isEmpty, case .deviceGone(let response, _) = outcome else { return false }
        return response.status != 400
    }
}

import HatoModel
import HatoPush
import HatoStorage

/// One transaction that registers a device.
struct Registration: Sendable {
    /// What the request says.
    var form: DeviceRecord
    /// The name of the device if it is a new one.
    var id: String
    /// The secret of the request, and one for a new webhook without it.
    var given: WebhookSecret?
    var fresh: WebhookSecret
    /// That of the app, for a device of APNs that names none.
    var environment: Notifier.APNsEnvironment
    /// Devices that a user has at most.
    var devicesMax: Int
    var policy: DeliveryPolicy

    /// What registering came to.
    struct Outcome: Sendable {
        var result: Notifier.Devices.Register.Result
        /// Devices that went: that of the token's former user, and the longest silent one of a user with too many.
        var gone: [String] = []
    }

    func apply(
        to transaction: any StoreTransaction, _ writes: inout RecordWrites, now: Int64
    ) throws -> Outcome {
        let known = try known(transaction)
        if try GoneUsers.isGone(form.uid, in: transaction) { GoneUsers.cameBack(form.uid, &writes) }
        var outcome = Outcome(result: .init(device: known?.device ?? id))
        var device: DeviceRecord
        if let known, known.uid == form.uid {
            device = known.renewed(by: form, at: now)
            if let given { outcome.result.secret = device.replaceSecret(given, at: now, policy)?.text }
        } else {
            let secret = given ?? fresh
            device = form.begun(as: id, at: now, environment: environment, secret: secret)
            if device.platform == .webhook { outcome.result.secret = secret.text }
            outcome.result.device = id
            // It belongs to the newest user: what waits for the former one must not be shown there.
            var leaving = [known].compactMap(\.self)
            leaving += try excess(transaction)
            for former in leaving { former.delete(in: &writes) }
            outcome.gone = leaving.map(\.device)
        }
        writes.put(device.key, device)
        writes.put(device.userKey)
        writes.put(device.addressKey, bytes: Array(device.device.utf8))
        return outcome
    }

    private func known(_ reading: some StoreReading) throws -> DeviceRecord? {
        guard form.platform == .webhook else { return try reading.device(at: form.addressKey) }
        let former = DeviceRecord.webhookKey(form.url ?? "", app: form.app)
        let known = try reading.device(at: form.addressKey) ?? reading.device(at: former)
        return known?.uid == form.uid ? known : nil
    }

    /// The devices that were silent the longest, so that one more is not too many: a new phone is never refused.
    private func excess(_ reading: some StoreReading) throws -> [DeviceRecord] {
        let devices = try reading.devices(of: form.uid)
        guard devices.count >= devicesMax else { return [] }
        let ranked = devices.sorted { one, other in
            // What gets no deliveries goes first.
            let (isActive, isOtherActive) = (one.state == .active, other.state == .active)
            return isActive == isOtherActive ? one.lastSeen < other.lastSeen : !isActive
        }
        return Array(ranked.prefix(devices.count - devicesMax + 1))
    }
}

extension StoreReading {
    func device(at addressKey: RecordKey) throws -> DeviceRecord? {
        guard let name = try value(addressKey) else { return nil }
        return try readable(DeviceRecord.self, DeviceRecord.key(String(decoding: name, as: UTF8.self)))
    }
}

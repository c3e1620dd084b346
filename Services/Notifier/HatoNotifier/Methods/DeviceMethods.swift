import HatoIdentity
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging

/// `notifier.devices.…`: the devices of users.
struct DeviceMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Devices.Register.self, in: &router) { methods, request, context in
            try await methods.register(request, context.caller)
        }
        handle(Notifier.Devices.List.self, in: &router) { methods, request, context in
            try await methods.devices(request, context.caller)
        }
        handle(Notifier.Devices.RotateSecret.self, in: &router) { methods, request, context in
            try await methods.rotateSecret(request, context.caller)
        }
        handle(Notifier.Devices.Unregister.self, in: &router) { methods, request, context in
            try await methods.unregister(request.device, context.caller)
        }
    }

    func register(
        _ request: Notifier.Devices.Register, _ caller: Caller
    ) async throws -> Notifier.Devices.Register.Result {
        let uid = try owner(caller, named: request.uid)
        try checks.key(uid, "uid", bytesMax: configuration.limits.uidBytesMax)
        try checks.key(request.app, "app")
        try checks.key(request.locale, "locale")
        let given = try secret(request.secret)
        guard let channel = channels.first(where: { $0.platform == request.platform }) else {
            throw RPCError.invalidArgument("platform", reason: "unsupported_platform", "This platform is not served")
        }
        let checked = try await channel.check(.webhook(url: request.url, secrets: []), for: uid)
        guard case .webhook(let url, _) = checked else { throw RPCError.internalError }
        let fresh = WebhookSecret(random: configuration.random)
        let session: String? = if case .user(let user) = caller { user.session } else { nil }
        let (id, limits, time, policy) = (
            outbox.newID("dev_"), configuration.limits, configuration.time, configuration.delivery
        )
        return try await store.write { [authenticator = service.authenticator] transaction in
            // The session may have ended while the address was checked: no event would remove the device any more.
            if case .user(let user) = caller, authenticator.hasEnded(user) { throw TokenError.revoked.rpcError }
            let now = time.now()
            var writes = RecordWrites()
            let addressKey = DeviceRecord.addressKey(request.platform, app: request.app, url: url, of: uid)
            let formerKey = DeviceRecord.formerAddressKey(request.platform, app: request.app, url: url)
            var device: DeviceRecord
            var shown: WebhookSecret?
            if let known = try transaction.device(at: addressKey) ?? transaction.device(at: formerKey), known.uid == uid
            {
                device = known
                device.state = .active
                device.disabledReason = nil
                device.failingSince = nil
                if let given { shown = device.replaceSecret(given, at: now, policy) }
            } else {
                guard try transaction.deviceKeys(of: uid).count < limits.devicesPerUserMax else {
                    throw NotifierError.tooManyDevices(limits.devicesPerUserMax)
                }
                let secret = given ?? fresh
                shown = secret
                device = DeviceRecord(
                    device: id, uid: uid, platform: request.platform, url: url, secret: secret.text, state: .active,
                    createdAt: now)
            }
            device.app = request.app
            device.session = session
            device.locale = request.locale ?? device.locale
            writes.put(device.key, device)
            writes.put(device.userKey)
            writes.put(addressKey, bytes: Array(device.device.utf8))
            try writes.apply(to: transaction)
            return Notifier.Devices.Register.Result(device: device.device, secret: shown?.text)
        }.outcome
    }

    func devices(_ request: Notifier.Devices.List, _ caller: Caller) async throws -> Notifier.Devices.List.Result {
        let limit = try checks.page(request.limit)
        try checks.devicePage(request.after)
        let uid = caller.isAdministrator ? request.uid : try owner(caller, named: request.uid)
        let after = request.after
        return try await store.read { snapshot in
            let rows =
                try uid.map { uid in
                    let prefix = RecordKey(.deviceOfUser).with(uid)
                    return try snapshot.rows(prefix, after: after.map { prefix.with($0) }, limit: limit)
                } ?? snapshot.rows(RecordKey(.device), after: after.map { DeviceRecord.key($0) }, limit: limit)
            let names = try rows.map { row in
                var reader = RecordKeyReader(row.key.bytes)
                if uid != nil { _ = reader.text() }
                guard let device = reader.text() else { throw UnreadableRecord(key: row.key.bytes) }
                return device
            }
            return Notifier.Devices.List.Result(
                devices: try names.compactMap { try snapshot.readable(DeviceRecord.self, DeviceRecord.key($0))?.shown },
                after: names.count < limit ? nil : names.last)
        }
    }

    func rotateSecret(
        _ request: Notifier.Devices.RotateSecret, _ caller: Caller
    ) async throws -> Notifier.Devices.RotateSecret.Result {
        let new = try secret(request.secret) ?? WebhookSecret(random: configuration.random)
        let (time, policy) = (configuration.time, configuration.delivery)
        return try await store.write { transaction in
            var writes = RecordWrites()
            var device = try transaction.device(request.device, of: caller)
            let now = time.now()
            _ = device.replaceSecret(new, at: now, policy)
            writes.put(device.key, device)
            try writes.apply(to: transaction)
            return .init(secret: new.text, previousUntil: Int(device.previousUntil ?? now))
        }.outcome
    }

    func unregister(_ name: String, _ caller: Caller) async throws -> Empty {
        _ = try await store.write { transaction in
            let device = try transaction.device(name, of: caller)
            var writes = RecordWrites()
            device.delete(in: &writes)
            try writes.apply(to: transaction)
        }
        await outbox.dropDeliveriesIfPossible(of: name, notices)
        return Empty()
    }

    private func secret(_ text: String?) throws(RPCError) -> WebhookSecret? {
        guard let text else { return nil }
        do { return try WebhookSecret(text) } catch {
            throw .invalidArgument("secret", reason: error.reason, error.message)
        }
    }

    /// Whose devices are meant: the caller's; an administrator names the user.
    private func owner(_ caller: Caller, named uid: String?) throws -> String {
        switch caller {
        case .administrator:
            guard let uid else { throw NotifierError.uidMissing }
            return uid
        case .user(let user):
            guard uid == nil || uid == user.uid else { throw NotifierError.foreignUser }
            return user.uid
        case .nobody, .service: throw RPCError.missingCredential
        }
    }
}

extension DeviceRecord {
    /// Makes `new` the signing secret; the former one signs too for a while. Returns the new one, nil when it is no
    /// change.
    fileprivate mutating func replaceSecret(
        _ new: WebhookSecret, at now: Int64, _ policy: DeliveryPolicy
    ) -> WebhookSecret? {
        guard new.text != secret else { return nil }
        previousSecret = secret
        previousUntil = now + policy.secretOverlap.milliseconds
        secret = new.text
        return new
    }
}

extension StoreReading {
    fileprivate func device(at addressKey: RecordKey) throws -> DeviceRecord? {
        guard let name = try value(addressKey) else { return nil }
        return try readable(DeviceRecord.self, DeviceRecord.key(String(decoding: name, as: UTF8.self)))
    }

    /// The caller's device; that of another user is not found.
    fileprivate func device(_ name: String, of caller: Caller) throws -> DeviceRecord {
        guard let device = try record(DeviceRecord.self, DeviceRecord.key(name)),
            caller.isAdministrator || caller.uid == device.uid
        else { throw NotifierError.deviceNotFound(name) }
        return device
    }
}

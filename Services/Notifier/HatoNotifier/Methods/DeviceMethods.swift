import HatoFetch
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
        let timeZone = request.timeZone.flatMap { checks.known(timeZone: $0) }
        let given = try secret(request.secret)
        let session: String? = if case .user(let user) = caller { user.session } else { nil }
        let app = request.app ?? Delivery.defaultApp
        let form = DeviceRecord(
            DeviceRecord.Form(
                uid: uid, platform: request.platform, app: app == Delivery.defaultApp ? nil : app,
                locale: request.locale, timeZone: timeZone, session: session),
            try DeviceForm(request: request, caller: caller).address(), createdAt: configuration.time.now())
        try service.apps.requireCredentials(of: app, for: request.platform)
        let registration = Registration(
            form: form.at(try await checkedURL(of: form)), id: outbox.newID("dev_"), given: given,
            fresh: WebhookSecret(random: configuration.random), environment: service.apps.environment(of: app),
            devicesMax: configuration.limits.devicesPerUserMax, policy: configuration.delivery)
        let time = configuration.time
        let registered = try await store.write { [authenticator = service.authenticator] transaction in
            // The session may have ended while the address was checked: no event would remove the device any more.
            if case .user(let user) = caller, authenticator.hasEnded(user) { throw TokenError.revoked.rpcError }
            var writes = RecordWrites()
            let registered = try registration.apply(to: transaction, &writes, now: time.now())
            try writes.apply(to: transaction)
            return registered
        }.outcome
        for device in registered.gone { await notices.dropDeliveries(of: device, outbox) }
        if form.platform.showsUser { await WaitingMails(outbox: outbox).userWasSeenIfPossible(uid, notices) }
        if timeZone != nil { try await QuietEnds(outbox: outbox).register(of: uid) }
        return registered.result
    }

    /// The URL of a webhook or a subscription in its normal spelling. Throws `RPCError` when it may not be called.
    private func checkedURL(of form: DeviceRecord) async throws -> String? {
        let address: DeviceAddress
        switch form.platform {
        case .webhook: address = .webhook(url: form.url ?? "", secrets: [])
        case .webpush: address = try form.address(at: 0)
        case .apns, .fcm, .email: return nil
        }
        guard let channel = channels.first(where: { $0.platform == form.platform }) else {
            throw RPCError.invalidArgument("platform", reason: "unsupported_platform", "This platform is not served")
        }
        do {
            switch try await channel.check(address, of: form.app ?? Delivery.defaultApp, for: form.uid) {
            case .webhook(let url, _): return url
            case .webpush(let subscription): return subscription.endpoint
            case .apns, .fcm, .email: throw RPCError.internalError
            }
        } catch let error as AddressRefusal where form.platform == .webpush {
            throw RPCError.invalidArgument("subscription.endpoint", reason: error.reason, error.message)
        }
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
            guard device.platform == .webhook else { throw NotifierError.noSecret(request.device) }
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
        await notices.dropDeliveries(of: name, outbox)
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
        case .nobody, .variable, .service: throw RPCError.missingCredential
        }
    }
}

extension StoreReading {
    /// The caller's device; that of another user is not found.
    fileprivate func device(_ name: String, of caller: Caller) throws -> DeviceRecord {
        guard let device = try record(DeviceRecord.self, DeviceRecord.key(name)),
            caller.isAdministrator || caller.uid == device.uid
        else { throw NotifierError.deviceNotFound(name) }
        return device
    }
}

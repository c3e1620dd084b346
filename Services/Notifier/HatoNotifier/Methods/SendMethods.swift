import HatoFollow
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage

/// `notifier.send`, its outbox and its followers.
struct SendMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Send.self, in: &router) { methods, request, _ in try await methods.send(request) }
        handle(Notifier.Status.self, in: &router) { methods, request, _ in
            try await methods.status(request)
        }
        handle(Notifier.Stats.self, in: &router) { methods, _, _ in try await methods.stats() }
        handle(Notifier.Follow.self, in: &router) { methods, request, context in
            try FollowRefusal.check(after: request.after, epoch: request.epoch, of: "notifier")
            return try await methods.followers.follow(after: request.after, epoch: request.epoch, context)
        }
        handle(Notifier.Unfollow.self, in: &router) { methods, request, context in
            try methods.followers.unfollow(request.subscription, on: context.connection)
            return Empty()
        }
        handle(Notifier.Backup.self, in: &router) { methods, request, _ in try await methods.backup(request.name) }
        handle(Notifier.Dead.List.self, in: &router) { methods, request, _ in
            let limit = try methods.checks.page(request.limit)
            do { return try await methods.outbox.deadLetters(after: request.after, limit: limit) } catch let error
                as ArgumentError
            {
                throw RPCError.invalidArgument("after", reason: error.reason, error.message)
            }
        }
        handle(Notifier.Dead.Replay.self, in: &router) { methods, request, _ in
            .init(replayed: try await methods.outbox.replay(try methods.choice(request.deliveries, request.all)))
        }
        handle(Notifier.Dead.Drop.self, in: &router) { methods, request, _ in
            .init(dropped: try await methods.outbox.drop(try methods.choice(request.deliveries, request.all)))
        }
    }

    func send(_ request: Notifier.Send) async throws -> Notifier.Send.Result {
        let recipients = try recipients(request.to)
        if let text = request.notification { try checks.text(text) }
        try checks.localized(request.localized)
        try checks.data(request.data, type: request.type)
        try checks.options(request.options)
        try checks.link(request.options?.image, "options.image")
        try checks.link(request.options?.link, "options.link")
        try checks.platforms(request.platforms)
        try checks.content(request.content, request.platforms)
        try checks.key(request.idempotencyKey, "idempotencyKey")
        try checks.key(request.category, "category")
        let now = configuration.time.now()
        let timeToLive = checks.timeToLive(
            request.options?.ttlSeconds, otherwise: configuration.delivery.timeToLive)
        var new = NewNotification(
            recipients: recipients, text: request.notification ?? Notifier.NotificationText(), createdAt: now,
            expiresAt: now + timeToLive)
        new.localized = request.localized
        new.data = request.data ?? [:]
        new.collapseKey = request.options?.collapseKey
        new.options = request.options
        new.platforms = request.platforms
        new.category = request.category
        new.content = request.content
        try await complete(&new, request)
        if request.dryRun == true {
            let trial = try await OutboxTrial(outbox).acceptance(of: new)
            return .init(notification: nil, recipients: trial.recipients, fanOut: trial.isFannedOut ? true : nil)
        }
        if let key = request.idempotencyKey {
            new.idempotency = .init(scope: "administrator", key: key, fingerprint: try fingerprint(of: request))
        }
        let accepted = try await outbox.accept(new)
        return .init(
            notification: accepted.notification, recipients: accepted.recipients,
            fanOut: accepted.isFannedOut ? true : nil)
    }

    private func status(_ request: Notifier.Status) async throws -> Notifier.Status.Result {
        let limit = try request.limit.map { try checks.page($0) } ?? configuration.limits.pageMax
        let statuses = NotificationStatuses(outbox.store)
        guard let status = try await statuses.status(of: request.notification, after: request.after, limit: limit)
        else { throw NotifierError.notificationNotFound(request.notification) }
        return status
    }

    /// Checks the data against the type, and takes what the type gives.
    private func complete(_ new: inout NewNotification, _ request: Notifier.Send) async throws {
        if let name = request.type {
            guard let typed = try await store.read({ try $0.typedContent(name) }) else {
                throw PayloadError.unknownType(name)
            }
            do {
                try typed.complete(&new, hasText: request.notification != nil, checks.limits)
            } catch { throw error.rpcError(typed.type) }
        }
        // Each device shows what the members of its platform say.
        if request.notification == nil, new.text.isEmpty, new.platforms?.hasMembers == true { return }
        try checks.text(new.text)
    }

    private func recipients(_ target: Notifier.SendTarget) throws -> NewNotification.Recipients {
        if let topic = target.topic, target.uids == nil, target.devices == nil, target.tokens == nil {
            try checks.key(topic, "to.topic")
            return .topic(topic)
        }
        guard target.topic == nil else { throw Self.severalRecipients }
        switch (target.uids, target.devices, target.tokens) {
        case (let uids?, nil, nil):
            try checks.uids(uids, "to.uids")
            return .uids(uids)
        case (nil, let devices?, nil):
            try checks.uids(devices, "to.devices")
            return .devices(devices)
        case (nil, nil, let tokens?):
            let forms = try checks.tokens(tokens, outbox)
            for token in tokens {
                try service.apps.requireCredentials(of: token.app ?? Delivery.defaultApp, for: token.platform)
            }
            return .tokens(forms)
        default: throw Self.severalRecipients
        }
    }

    private static let severalRecipients = RPCError.invalidArgument(
        "to", reason: "invalid_recipients", "Give exactly one of uids, devices, tokens, topic")

    /// The same for equal requests; no proof of anything (FNV-1a, 64 bits).
    private func fingerprint(of request: Notifier.Send) throws -> String {
        var writer = JSONWriter()
        writer.write(request.members)
        let hash = writer.bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }

    func stats() async throws -> Notifier.Stats.Result {
        let counts = try await outbox.counts()
        var result = Notifier.Stats.Result(
            pending: counts.pending, leased: counts.leased, dead: counts.dead, delivered: outbox.metrics.deliveredCount,
            dropped: outbox.metrics.droppedCount, cursors: try await feeds?.statuses() ?? [])
        result.incomplete = outbox.metrics.incompleteCount
        result.nextDueAt = counts.nextDueAt.map { Int($0) }
        return result
    }

    fileprivate func choice(_ deliveries: [String]?, _ all: Bool?) throws -> DeadChoice {
        switch (deliveries, all) {
        case (let deliveries?, nil), (let deliveries?, false):
            try checks.uids(deliveries, "deliveries")
            return .these(deliveries)
        case (nil, true): return .all
        default:
            throw RPCError.invalidArgument(
                "deliveries", reason: "invalid_choice", "Name deliveries, or say all: true (--all)")
        }
    }

    func backup(_ name: BackupName) async throws -> BackupResult {
        guard let folder = configuration.backupFolder else { throw RPCError.backupsOff }
        do {
            guard let version = try await store.read({ [store] _ in try folder.write(name.text, of: store) }) else {
                throw RPCError.backupExists(name)
            }
            return BackupResult(name: name, version: version)
        } catch StoreError.locked {
            throw RPCError.backupRunning
        } catch StoreError.io(let why) {
            throw RPCError.backupFailed(why)
        } catch StoreError.corrupted(let why) {
            throw RPCError.storeDamaged(why)
        }
    }
}

extension Notifier.PlatformMembers {
    fileprivate var hasMembers: Bool { [apns, fcm, webpush].contains { $0?.object?.isEmpty == false } }
}

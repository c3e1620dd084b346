import HatoModel
import HatoPush
import HatoRPC
import HatoStorage

/// `notifier.triggers.test`: what a trigger would send to whom for a change, and why not.
struct TriggerTrial: NotifierMethods {
    let service: NotifierService

    init(_ service: NotifierService) { self.service = service }

    func add(to router: inout RPCRouter) {}

    func result(of request: Notifier.Triggers.Test) async throws -> Notifier.Triggers.Test.Result {
        try checks.key(request.uid, "uid", bytesMax: configuration.limits.uidBytesMax)
        let record = try await store.read { try $0.record(TriggerRecord.self, TriggerRecord.key(request.id)) }
        guard let trigger = record?.trigger else { throw NotifierError.triggerNotFound(request.id) }
        var compiled = try CompiledTrigger(trigger, limits: configuration.limits)
        if let type = trigger.type { compiled.typed = try await store.read { try $0.typedContent(type) } }
        guard case .exact(let parameters) = compiled.pattern.match(request.path) else { return .nothing(.pattern) }
        let type = request.type ?? .created
        guard trigger.on.contains(where: { $0.includes(type) }) else { return .nothing(.type) }
        var change = FeedChange(
            pattern: compiled.pattern.description, parameters: [:], path: request.path.text, type: type,
            before: request.before, after: request.after, uid: request.uid)
        for parameter in parameters { change.parameters[parameter.name] = parameter.key.text }
        if request.type == nil, request.before == nil, request.after == nil {
            change.after = try await node(at: request.path, for: trigger)
            guard change.after != nil else { return .nothing(.noNode) }
        }
        guard compiled.truth(change).fires else { return .nothing(.condition) }
        return try await result(of: compiled, for: change)
    }

    private func result(
        of compiled: CompiledTrigger, for given: FeedChange
    ) async throws -> Notifier.Triggers.Test.Result {
        var change = given
        if compiled.namesAuthor, let path = change.authorNamePath {
            change.authorName = try await source(of: compiled.trigger).text(path)
        }
        let found = try await recipients(of: compiled, change)
        let now = configuration.time.now()
        let commit = FeedCommit(version: 0, epoch: "", time: now, changes: [change])
        let settings = CompiledTrigger.Settings(
            limits: configuration.limits, timeToLive: configuration.delivery.timeToLive, now: now)
        let filled = compiled.notification(for: change, in: commit, settings: settings)
        let new: NewNotification?
        do { new = try compiled.completed(filled, configuration.limits) } catch {
            let type = Notifier.PayloadType(type: compiled.trigger.type ?? "")
            throw error.rpcError(compiled.typed?.type ?? type)
        }
        var result = Notifier.Triggers.Test.Result(matches: true)
        result.params = change.parameters
        result.recipients = found.uids
        guard let new else {
            // Without a text nothing is sent.
            (result.devices, result.reason) = (0, .empty)
            return result
        }
        result.devices = found.devices
        result.notification = new.text
        result.data = new.data
        result.collapseKey = new.collapseKey
        result.deliveries = try await deliveries(of: new, to: found.places)
        return result
    }

    /// What stands at a path of the tree; nil: nothing. Throws the error of messages.
    private func node(at path: TreePath, for trigger: Notifier.Trigger) async throws -> JSONValue? {
        let source = try source(of: trigger)
        let reservation = try await budget.reads.reserve(budget.nodeRead)
        defer { withExtendedLifetime(reservation) {} }
        let node = try await source.messages.node(source.database, path, within: budget.node)
        return node == .null ? Optional.none : node
    }

    /// What the triggers of a database read.
    private func source(of trigger: Notifier.Trigger) throws -> TriggerSource {
        guard let messages, let database = DatabaseName(rawValue: trigger.database) else { throw NotifierError.noFeed }
        return TriggerSource(
            database: database, messages: messages, outbox: outbox, budget: budget, notices: notices)
    }

    // MARK: Recipients

    /// A device of a recipient, or a recipient without one.
    private struct Place: Sendable {
        var uid: String
        var device: DeviceRecord?
        /// Whether the device is in the store.
        var isRegistered = true
        /// Nil: it is sent.
        var skipped: Notifier.TrialSkip?
    }

    private struct Found: Sendable {
        /// Without the author.
        var uids: [String] = []
        /// In the order of users and devices, those of tokens behind: as many as are shown.
        var places: [Place] = []
        /// Devices that it would go to.
        var devices = 0

        mutating func add(_ place: Place) {
            if place.skipped == nil { devices += 1 }
            if places.count < Notifier.Triggers.Test.deliveriesMax { places.append(place) }
        }
    }

    private func recipients(of trigger: CompiledTrigger, _ change: FeedChange) async throws -> Found {
        guard let query = trigger.recipients.query(change) else { return Found() }
        let readsNothing = query.keys == nil && query.values == nil && query.tokenPath == nil && query.token == nil
        if readsNothing, query.presence == nil { return try await found(query.uids, [], author: change.uid) }
        let source = try source(of: trigger.trigger)
        var uids: [String] = []
        if let path = query.keys {
            let reservation = try await budget.reads.reserve(budget.recipientsRead)
            defer { withExtendedLifetime(reservation) {} }
            var reading = KeyReading(
                source.messages, source.database, path, configuration.limits, textBytesMax: budget.keysTextMax)
            while let part = try await reading.next() { uids += part }
        }
        uids += try await source.uids(query)
        var present: Set<String> = []
        if let path = query.presence {
            present = try await PresenceReading(source: source, author: change.uid).present(among: uids, at: path)
        }
        let tokens = try await source.tokens(query, of: uids.filter { !present.contains($0) })
        return try await found(uids, tokens, author: change.uid, present)
    }

    private func found(
        _ uids: [String], _ tokens: [FoundToken], author: String?, _ present: Set<String> = []
    ) async throws -> Found {
        let users = Set(uids).subtracting([""])
        var found = try await store.read { snapshot in
            var (found, seen): (Found, Set<String>) = (Found(), [])
            for uid in users.sorted() {
                guard uid != author else {
                    found.add(Place(uid: uid, skipped: .author))
                    continue
                }
                let devices = try snapshot.devices(of: uid)
                if devices.isEmpty { found.add(Place(uid: uid, skipped: .noDevice)) }
                for device in devices.sorted(by: { $0.device < $1.device }) {
                    if !tokens.isEmpty { seen.insert(device.device) }
                    let isThere = present.contains(uid) ? Notifier.TrialSkip.present : nil
                    found.add(Place(uid: uid, device: device, skipped: device.state == .active ? isThere : .disabled))
                }
            }
            for token in tokens {
                let known = try snapshot.device(at: token.form.addressKey)
                let device = known ?? token.form
                guard seen.insert(device.device).inserted else { continue }
                var place = Place(uid: device.uid, device: device, isRegistered: known != nil)
                if !device.uid.isEmpty, device.uid == author {
                    place.skipped = .author
                } else if device.state != .active {
                    place.skipped = .gone
                } else if !token.reaches(device) {
                    place.skipped = .otherUser
                } else if present.contains(device.uid) {
                    place.skipped = .present
                }
                found.add(place)
            }
            return found
        }
        var seen: Set<String> = []
        found.uids = uids.filter { !$0.isEmpty && $0 != author && seen.insert($0).inserted }
        return found
    }

    // MARK: Deliveries

    private func deliveries(of new: NewNotification, to places: [Place]) async throws -> [Notifier.TrialDelivery] {
        let devices = places.compactMap { $0.skipped == nil ? $0.device : nil }
        var sent = try await OutboxTrial(outbox).deliveries(of: new, to: devices)[...]
        return places.map { place in
            var shown = Notifier.TrialDelivery()
            shown.uid = place.uid.isEmpty ? nil : place.uid
            shown.device = place.isRegistered ? place.device?.device : nil
            shown.platform = place.device?.platform
            shown.app = place.device.map { $0.app ?? Delivery.defaultApp }
            shown.skipped = place.skipped
            guard place.skipped == nil, let outcome = sent.popFirst() else { return shown }
            let channel = channels.first { $0.platform == place.device?.platform }
            var delivery: Delivery?
            switch outcome {
            case .sent(let sent): delivery = sent
            case .skipped(let skip):
                shown.skipped = skip
                return shown
            }
            guard let preview = delivery.flatMap({ channel?.preview(of: $0) }) else {
                shown.skipped = .notSendable
                return shown
            }
            (shown.headers, shown.body) = (preview.headers, preview.body)
            return shown
        }
    }
}

extension Notifier.Triggers.Test.Result {
    fileprivate static func nothing(_ reason: Notifier.TrialReason) -> Self {
        var result = Self(matches: false)
        result.reason = reason
        return result
    }
}

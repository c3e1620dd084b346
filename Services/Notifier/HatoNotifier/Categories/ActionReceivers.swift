import HatoModel
import HatoPush
import HatoStorage

/// The receivers of the effects `webhook` of a category: each URL is a device without a user, with a signing secret,
/// the same one for all categories. It goes with the last category that names it, but not before all reports to it have
/// ended (`UnnamedReceivers`).
struct ActionReceivers: Sendable {
    private let category: Notifier.Category
    /// Devices for URLs that have none, in the order of the actions.
    private let fresh: [DeviceRecord]

    /// - Parameter device: makes a new device for a URL.
    init(_ category: Notifier.Category, device: (String) -> DeviceRecord) {
        self.category = category
        var seen: Set<String> = []
        fresh = category.actions.compactMap(\.effect?.webhook).filter { seen.insert($0).inserted }.map(device)
    }

    /// What setting a category came to.
    struct Outcome: Sendable {
        var shown: [Notifier.ActionReceiver] = []
        /// Devices that went.
        var gone: [String] = []
    }

    /// A receiver that is there stays the one it is, and is active again.
    ///
    /// - Parameter former: the category before.
    func set(inPlaceOf former: CategoryRecord?, in draft: inout OutboxDraft) throws -> Outcome {
        var outcome = Outcome()
        for new in fresh {
            let known = try draft.transaction.device(at: new.addressKey)
            let device = known?.renewed(by: new, at: draft.now) ?? new
            draft.writes.put(device.key, device)
            if known == nil { draft.writes.put(device.addressKey, bytes: Array(device.device.utf8)) }
            outcome.shown.append(
                .init(url: new.url ?? "", device: device.device, secret: known == nil ? device.secret : nil))
        }
        if let former, !former.isUsed {
            outcome.gone = try Self.remove(of: former.category, besides: category.webhooks, in: &draft)
        }
        return outcome
    }

    /// Effects that one transaction looks at.
    private static let effectsMax = 1_024

    /// The category goes, with the receivers that no other category and none of `urls` names. Returns their devices.
    ///
    /// A receiver for which reports wait stays: they are of a category that named it before (`UnnamedReceivers`).
    static func remove(
        of category: Notifier.Category, besides urls: Set<String> = [], in draft: inout OutboxDraft
    ) throws -> [String] {
        let (rows, uses) = (draft.transaction, ReceiverUses(draft.transaction))
        var going = category.webhooks.subtracting(urls)
        guard !going.isEmpty, let named = try uses.urlsOfCategories(besides: category.id) else { return [] }
        going.subtract(named)
        guard !going.isEmpty else { return [] }
        going.subtract(try uses.urlsOfEffects(among: going, upTo: effectsMax))
        let devices = try going.sorted().compactMap { try rows.device(at: DeviceRecord.receiverKey($0)) }
            .filter { try !uses.hasDeliveries(waitingFor: $0) }
        for device in devices { device.delete(in: &draft.writes) }
        return devices.map(\.device)
    }
}

/// Receivers that no category names any more, since the URLs of a used category were changed: they stay for what waits.
struct UnnamedReceivers {
    let outbox: Outbox

    /// Receivers of one transaction.
    private static let pageMax = 256
    /// Effects that are looked at; while more are not done, all receivers stay.
    private static let effectsMax = 65_536

    /// Removes those of these devices that no category names and that no report can be for any more.
    func remove(among devices: [RecordKey]) async throws {
        guard !devices.isEmpty else { return }
        let unnamed = try await outbox.store.read { try Self.unnamed(among: devices, in: $0) }
        for page in unnamed.pages(of: Self.pageMax) {
            let gone = try await outbox.change { draft in try Self.remove(Array(page), in: &draft) }
            outbox.metrics.devicesRemoved(gone, because: .unnamed)
        }
    }

    private static func unnamed(among devices: [RecordKey], in rows: some StoreReading) throws -> [DeviceRecord] {
        let uses = ReceiverUses(rows)
        guard let named = try uses.urlsOfCategories() else { return [] }
        let unnamed = try devices.compactMap { try rows.readable(DeviceRecord.self, $0) }.filter { device in
            try device.isReceiver && !named.contains(device.url ?? "") && !uses.hasDeliveries(waitingFor: device)
        }
        guard !unnamed.isEmpty else { return [] }
        let reported = try uses.urlsOfEffects(among: Set(unnamed.compactMap(\.url)), upTo: effectsMax)
        return unnamed.filter { !reported.contains($0.url ?? "") }
    }

    private static func remove(_ devices: [DeviceRecord], in draft: inout OutboxDraft) throws -> Int {
        let (rows, uses) = (draft.transaction, ReceiverUses(draft.transaction))
        guard let named = try uses.urlsOfCategories() else { return 0 }
        var count = 0
        for former in devices {
            // An effect may be for one that a category named since, if only for a while.
            guard let device = try rows.readable(DeviceRecord.self, former.key), device.lastSeen == former.lastSeen,
                !named.contains(device.url ?? ""), try !uses.hasDeliveries(waitingFor: device)
            else { continue }
            device.delete(in: &draft.writes)
            count += 1
        }
        return count
    }
}

/// What receivers are kept for.
private struct ReceiverUses {
    let rows: any StoreReading

    init(_ rows: any StoreReading) { self.rows = rows }

    /// The URLs that categories name, but for one of them; nil when a category cannot be read, since it is not known
    /// what it names.
    func urlsOfCategories(besides id: String? = nil) throws -> Set<String>? {
        let own = id.map { CategoryRecord.key($0) }
        var urls: Set<String> = []
        for row in try rows.rows(RecordKey(.category)) where row.key != own {
            guard let record = try? RecordCodec.decode(CategoryRecord.self, row.value, key: row.key.bytes) else {
                return nil
            }
            urls.formUnion(record.category.webhooks)
        }
        return urls
    }

    /// Those of the URLs to which effects report that are not done yet; all of them when more effects than `limit` are
    /// not done. Effects that cannot be read will not be done.
    func urlsOfEffects(among urls: Set<String>, upTo limit: Int) throws -> Set<String> {
        var (found, count): (Set<String>, Int) = ([], 0)
        try rows.scan(KeyRange(prefix: RecordKey(.effect).bytes), reverse: false) { key, value in
            count += 1
            guard count <= limit else { return .stop }
            let effect = try? RecordCodec.decode(EffectRecord.self, value.copied, key: key.copied)
            if let effect, effect.kind == .webhook, let url = effect.value.string, urls.contains(url) {
                found.insert(url)
            }
            return .next
        }
        return count > limit ? urls : found
    }

    func hasDeliveries(waitingFor device: DeviceRecord) throws -> Bool {
        try !rows.keys(RecordKey(.lane).with(device.device), limit: 1).isEmpty
    }
}

extension Notifier.Category {
    fileprivate var webhooks: Set<String> { Set(actions.compactMap(\.effect?.webhook)) }

    /// Whether another one is the same but for the URLs of webhooks, which no device has.
    func differsOnlyInURLs(from other: Self) -> Bool { withoutURLs == other.withoutURLs }

    private var withoutURLs: Self {
        var category = self
        for index in category.actions.indices where category.actions[index].effect?.webhook != nil {
            category.actions[index].effect?.webhook = ""
        }
        return category
    }
}

extension DeviceRecord {
    /// The receiver of effects with a URL, to be known by this name.
    init(receiver url: String, named name: String, at now: Int64, _ secret: WebhookSecret) {
        self.init(Form(uid: "", platform: .webhook), Address(url: url), createdAt: now)
        self = begun(as: name, at: now, environment: .production, secret: secret)
    }

    /// What leads to the receiver of effects with a URL.
    static func receiverKey(_ url: String) -> RecordKey { webhookKey(url, app: nil).with("") }
}

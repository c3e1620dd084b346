import HatoModel
import HatoPush
import HatoStorage

/// The receivers of the effects `webhook` of a category: each URL is a device without a user, with a signing secret,
/// the same one for all categories. It goes with the last category that names it; once a notification had that one,
/// not before all reports to it have ended (`UnnamedReceivers`).
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

    /// The category goes, with the receivers that no other category and none of `urls` names. Returns their devices.
    static func remove(
        of category: Notifier.Category, besides urls: Set<String> = [], in draft: inout OutboxDraft
    ) throws -> [String] {
        var going = category.webhooks.subtracting(urls)
        guard !going.isEmpty else { return [] }
        for row in try draft.transaction.rows(RecordKey(.category)) where row.key != CategoryRecord.key(category.id) {
            let other = try? RecordCodec.decode(CategoryRecord.self, row.value, key: row.key.bytes)
            // What one names that cannot be read is not known.
            guard let other else { return [] }
            going.subtract(other.category.webhooks)
        }
        let devices = try going.sorted().compactMap { try draft.transaction.device(at: DeviceRecord.receiverKey($0)) }
        for device in devices { device.delete(in: &draft.writes) }
        return devices.map(\.device)
    }
}

/// Receivers that no category names any more, since the URLs of a used category were changed: they stay for what waits.
struct UnnamedReceivers {
    let outbox: Outbox

    /// Receivers of one transaction.
    private static let pageMax = 256

    /// Removes those of these devices that no category names and that no report can be for any more.
    func remove(among devices: [RecordKey]) async throws {
        for page in devices.pages(of: Self.pageMax) {
            let gone = try await outbox.change { draft in try Self.remove(among: Array(page), in: &draft) }
            outbox.metrics.devicesRemoved(gone, because: .unnamed)
        }
    }

    private static func remove(among devices: [RecordKey], in draft: inout OutboxDraft) throws -> Int {
        let rows = draft.transaction
        // An effect that is not done yet may be a report to any of them.
        guard try rows.count(.effect, upTo: 1) == 0 else { return 0 }
        var named: Set<String> = []
        for row in try rows.rows(RecordKey(.category)) {
            // What one names that cannot be read is not known.
            guard let record = try? RecordCodec.decode(CategoryRecord.self, row.value, key: row.key.bytes) else {
                return 0
            }
            named.formUnion(record.category.webhooks)
        }
        var count = 0
        for key in devices {
            guard let device = try rows.readable(DeviceRecord.self, key), device.isReceiver,
                !named.contains(device.url ?? ""),
                try rows.keys(RecordKey(.lane).with(device.device), limit: 1).isEmpty
            else { continue }
            device.delete(in: &draft.writes)
            count += 1
        }
        return count
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

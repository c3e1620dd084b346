import HatoModel
import HatoPush
import HatoStorage

/// The receivers of the effects `webhook` of a category: each URL is a device without a user, with a signing secret,
/// the same one for all categories. It goes with the last category that names it.
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
    func set(inPlaceOf former: Notifier.Category?, in draft: inout OutboxDraft) throws -> Outcome {
        var outcome = Outcome()
        for new in fresh {
            let known = try draft.transaction.device(at: new.addressKey)
            let device = known?.renewed(by: new, at: draft.now) ?? new
            draft.writes.put(device.key, device)
            if known == nil { draft.writes.put(device.addressKey, bytes: Array(device.device.utf8)) }
            outcome.shown.append(
                .init(url: new.url ?? "", device: device.device, secret: known == nil ? device.secret : nil))
        }
        if let former { outcome.gone = try Self.remove(of: former, besides: category.webhooks, in: &draft) }
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

extension Notifier.Category {
    fileprivate var webhooks: Set<String> { Set(actions.compactMap(\.effect?.webhook)) }
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

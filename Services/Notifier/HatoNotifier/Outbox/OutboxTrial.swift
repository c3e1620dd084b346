import HatoModel
import HatoPush
import HatoStorage

/// Says what accepting would come to, and writes nothing: transactions whose drafts are not applied, so that the very
/// same code decides.
struct OutboxTrial: Sendable {
    private let outbox: Outbox

    init(_ outbox: Outbox) { self.outbox = outbox }

    /// What accepting a notification would come to.
    func acceptance(of new: NewNotification) async throws -> AcceptedNotification {
        let (limits, policy) = (outbox.limits, outbox.policy)
        return try await run { draft in
            var acceptance = Acceptance(limits, policy)
            var counted = new
            counted.idempotency = nil
            return try acceptance.accept(counted, id: "", in: &draft)
        }
    }

    /// What a device would get.
    enum Sent: Sendable {
        case sent(Delivery)
        case skipped(Notifier.TrialSkip)
    }

    /// What these devices would get of a notification now, in their order, as their users want it.
    func deliveries(of new: NewNotification, to devices: [DeviceRecord]) async throws -> [Sent] {
        let id = outbox.newID("ntf_")
        let deliveries = try await run { draft in
            let notification = try NotificationRecord(new, id: id, recipients: devices.count, in: &draft)
            return try devices.enumerated().map { index, device -> Sent in
                guard let address = try? device.address(at: draft.now) else { return .skipped(.notSendable) }
                var isQuiet = false
                switch try PreferenceCheck(notification, to: device.uid, on: device.platform).verdict(&draft) {
                case .ended(.muted): return .skipped(.muted)
                case .ended: return .skipped(.off)
                case .unconcerned: break
                case .held: return .skipped(.quiet)
                case .wanted(let quiet): isQuiet = quiet?.state.isSilent == true
                }
                let delivery = NewDelivery(
                    new: new, notification: id, index: index, recipient: Recipient(device)
                ).record(at: draft.now)
                var sent = try notification.sent(as: delivery, to: device, at: address, draft.transaction)
                let admitted = DeliveryAdmission.Admitted(delivery: delivery, isQuiet: isQuiet)
                sent.content = admitted.content(
                    sent.content, summary: notification.options?.summary, locale: device.locale)
                let isCounted = new.isCounted && new.shown.isShown(on: device.platform) && !device.uid.isEmpty
                if isCounted, new.options?.thread != nil, new.options?.badge == nil {
                    // It is counted when it is accepted.
                    sent.content.appearance.badge = (sent.content.appearance.badge ?? 0) + 1
                }
                return .sent(sent)
            }
        }
        let replyTokens = ReplyTokens(outbox)
        return zip(deliveries, devices).map { delivery, device in
            guard case .sent(let sent) = delivery else { return delivery }
            return .sent(replyTokens.add(to: sent, on: device.platform))
        }
    }

    private func run<Outcome: Sendable>(
        _ body: @escaping @Sendable (inout OutboxDraft) throws -> Outcome
    ) async throws -> Outcome {
        let (waiting, time) = (outbox.waiting, outbox.time)
        let mails = MailLanes(outbox.policy, outbox.limits)
        return try await outbox.store.write { transaction in
            try waiting.transaction(keeping: false) {
                var draft = OutboxDraft(transaction, now: time.now(), waiting, mails)
                return try body(&draft)
            }
        }.outcome
    }
}

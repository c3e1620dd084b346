import HatoModel
import HatoPush

/// Gives pushes what their apps respond with.
struct ReplyTokens {
    private let outbox: Outbox

    init(_ outbox: Outbox) { self.outbox = outbox }

    /// What the app of each device needs to respond: the id of the notification and a reply token. A push that
    /// shows nothing, one to a token without a user, and an e-mail has none.
    func add(to leases: [Lease]) -> [Lease] {
        leases.map { lease in
            guard lease.platform != .email else { return lease }
            var lease = lease
            lease.delivery = add(to: lease.delivery, on: lease.platform)
            return lease
        }
    }

    func add(to delivery: Delivery, on platform: Notifier.Platform) -> Delivery {
        let content = delivery.content
        guard let replyKey = outbox.replyKey, !content.uid.isEmpty, content.isShown(on: platform) else {
            return delivery
        }
        var delivery = delivery
        delivery.content.hato.id = content.notification
        delivery.content.hato.reply = replyKey.token(
            ReplyCapability(
                notification: content.notification, uid: content.uid, device: content.device,
                createdAt: delivery.createdAt, now: outbox.time.now()))
        return delivery
    }
}

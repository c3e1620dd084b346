import HatoModel
import HatoPush

/// Gives pushes what their apps respond with.
struct ReplyTokens {
    private let outbox: Outbox

    init(_ outbox: Outbox) { self.outbox = outbox }

    /// What the app of each device needs to respond: the id of the notification and a reply token. A push without text,
    /// and one to a token without a user, has none.
    func add(to leases: [Lease]) -> [Lease] {
        guard let replyKey = outbox.replyKey else { return leases }
        let now = outbox.time.now()
        return leases.map { lease in
            let content = lease.delivery.content
            guard !content.uid.isEmpty, !content.text.isEmpty || content.neutralText != nil else { return lease }
            var lease = lease
            lease.delivery.content.hato.id = content.notification
            lease.delivery.content.hato.reply = replyKey.token(
                ReplyCapability(
                    notification: content.notification, uid: content.uid, device: content.device,
                    createdAt: lease.delivery.createdAt, now: now))
            return lease
        }
    }
}

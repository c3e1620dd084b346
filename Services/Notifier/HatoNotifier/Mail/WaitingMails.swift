import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// What waits to be sent by e-mail.
struct WaitingMails {
    let outbox: Outbox

    /// A device of a user has shown that the user is there: what waits to be sent by e-mail is dropped (`seen`). What
    /// is being sent is not tried again, and the next notification waits anew.
    ///
    /// Throws the errors of the store.
    func userWasSeen(_ uid: String) async throws {
        guard !uid.isEmpty else { return }
        // Mostly none has anything that waits: then nothing is written.
        let mailboxes = try await outbox.store.read { snapshot in
            try snapshot.devices(of: uid).filter { device in
                guard device.platform == .email else { return false }
                return try !snapshot.keys(RecordKey(.lane).with(device.device), limit: 1).isEmpty
            }
        }
        for mailbox in mailboxes {
            try await DeviceLanes(device: mailbox.device).drop(from: outbox) { $0.userWasSeen(at: $1) }
        }
    }

    /// The same after something that is done: a failure is no failure of it.
    func userWasSeenIfPossible(_ uid: String, _ notices: ThrottledNotices) async {
        do { try await userWasSeen(uid) } catch {
            notices.notice(
                .undroppedDeliveries, "e-mails for a user that is there are not dropped",
                ["uid": "\(uid)", "error": "\(error)"], level: .error)
        }
    }
}

extension Notifier.Platform {
    /// Whether a registration shows that the user is at the device: servers register webhooks, too, and an e-mail
    /// address is no device at hand. What is sent to others disturbs no user: quiet windows and pace do not concern it.
    var showsUser: Bool {
        switch self {
        case .apns, .fcm, .webpush: true
        case .webhook, .email: false
        }
    }
}

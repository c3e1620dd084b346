import HatoModel
import HatoStorage

/// What the preferences of a user say of a notification that would go to a device now.
struct PreferenceCheck {
    private let notification: NotificationRecord
    private let uid: String
    private let platform: Notifier.Platform

    init(_ notification: NotificationRecord, to uid: String, on platform: Notifier.Platform) {
        (self.notification, self.uid, self.platform) = (notification, uid, platform)
    }

    enum Verdict {
        /// It is not wanted.
        case ended(DeliveryStateMachine.Ending)
        /// It goes now: nothing of it is shown, or no person is in front of the device; or the device is none of the
        /// user's.
        case unconcerned
        /// It goes when the quiet windows let it, and when it has its turn.
        case wanted(KnownPreferences.Quiet?)
    }

    func verdict(_ draft: inout OutboxDraft) throws -> Verdict {
        // What a user chose is for others.
        guard notification.choice == nil else { return .unconcerned }
        let preferences = try draft.known.record(of: uid, in: draft.transaction)
        if preferences?.off?.contains(platform) == true { return .ended(.platformOff) }
        guard notification.shown.isShown(on: platform) else { return .unconcerned }
        if let thread = notification.options?.thread, preferences?.hasMutes == true,
            try PreferenceReading(draft.transaction).isMuted(thread, for: uid, at: draft.now)
        {
            return .ended(.muted)
        }
        guard platform.showsUser else { return .unconcerned }
        guard notification.options?.interruptionLevel?.passesQuietWindows != true else { return .wanted(nil) }
        return .wanted(try draft.known.quiet(of: uid, at: draft.now, in: draft.transaction))
    }
}

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
        /// It waits until a quiet window ends, in milliseconds since 1970.
        case held(until: Int64)
        /// It goes when it has its turn.
        case wanted(KnownPreferences.Quiet?)
    }

    /// - Parameter isForOthers: it goes for those of other threads that went into it, whether its own is muted or not.
    func verdict(_ draft: inout OutboxDraft, isForOthers: Bool = false) throws -> Verdict {
        // What a user chose is for others.
        guard notification.choice == nil else { return .unconcerned }
        let preferences = try draft.known.record(of: uid, in: draft.transaction)
        if preferences?.off?.contains(platform) == true { return .ended(.platformOff) }
        guard notification.shown.isShown(on: platform) else { return .unconcerned }
        if !isForOthers, let thread = notification.options?.thread, preferences?.hasMutes == true,
            try PreferenceReading(draft.transaction).isMuted(thread, for: uid, at: draft.now)
        {
            return .ended(.muted)
        }
        // Webhooks are servers.
        guard platform.showsUser || platform == .email else { return .unconcerned }
        let passes = notification.options?.interruptionLevel?.passesQuietWindows == true
        let quiet = passes ? nil : try draft.known.quiet(of: uid, at: draft.now, in: draft.transaction)
        if case .hold(let end) = quiet?.state { return .held(until: end) }
        // E-mails have no sound, and a pace of their own.
        return platform.showsUser ? .wanted(quiet) : .unconcerned
    }
}

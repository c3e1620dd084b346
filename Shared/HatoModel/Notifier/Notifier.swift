/// The requests of the notifier (protocol §6): devices, triggers, sending, and the state of deliveries.
///
/// Times are milliseconds since 1970. Only supported features are declared here.
public enum Notifier {
    /// The methods about devices.
    public enum Devices {}
    /// The methods about apps and their credentials.
    public enum Apps {}
    /// The methods about Web Push.
    public enum Webpush {}
    /// The methods about triggers.
    public enum Triggers {}
    /// The methods about types.
    public enum Types {}
    /// The methods about dead deliveries.
    public enum Dead {}
    /// The methods about what users want of notifications.
    public enum Preferences {}
    /// The methods about categories.
    public enum Categories {}
    /// The methods about quick replies.
    public enum QuickReplies {}
    /// The methods about the counts of threads.
    public enum Badges {}
    /// The methods about topics.
    public enum Topics {}
    /// The methods about deliveries.
    public enum Outbox {}

    public static let methods: [any RPCRequest.Type] = [
        Devices.Register.self, Devices.List.self, Devices.RotateSecret.self, Devices.Unregister.self,
        Webpush.Key.self, Apps.List.self, Apps.Check.self, Apps.Reload.self, Apps.Resume.self,
        Triggers.Set.self, Triggers.List.self, Triggers.Remove.self, Triggers.Test.self,
        Types.Set.self, Types.List.self, Types.Remove.self,
        Send.self, SendToDevice.self, Status.self, Stats.self, Follow.self, Unfollow.self, Backup.self,
        Dead.List.self, Dead.Replay.self, Dead.Drop.self,
        Preferences.Get.self, Preferences.Set.self,
        Categories.Set.self, Categories.List.self, Categories.Get.self, Categories.Remove.self,
        Respond.self, QuickReplies.Get.self, QuickReplies.Set.self,
        Badges.Get.self, Badges.Set.self, Withdraw.self,
        Topics.Subscribe.self, Topics.Unsubscribe.self, Topics.List.self, Outbox.List.self,
    ]

    public static let notifications: [any RPCNotification.Type] = [Event.self, Cancelled.self]
}

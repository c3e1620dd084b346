public import HatoModel

/// The limits of the notifier.
public struct NotifierLimits: Limits, Hashable {
    /// Devices of one user; at the limit, a new one takes the place of the one that was silent the longest.
    public var devicesPerUserMax = 32
    /// Devices without a user, of tokens that were named in place of devices; above, those go that were used the
    /// longest time ago.
    public var tokenDevicesMax = 100_000
    /// Users, devices or tokens named in one `send` or trigger.
    public var recipientsMax = 1_000
    /// Devices one notification of a trigger goes to; of its recipients the rest is left out and counted.
    public var deliveriesPerNotificationMax = 10_000
    /// Triggers of the service.
    public var triggersMax = 1_000
    /// Types of the service.
    public var typesMax = 1_000
    /// Fields of a type.
    public var typeFieldsMax = 64
    /// Locales of one notification, trigger or type.
    public var localesMax = 32
    /// UTF-8 of the texts of all locales together.
    public var localizedBytesMax = 16_384
    /// UTF-8 of a title; `send` is rejected above, the title of a trigger is cut.
    public var titleBytesMax = 1_024
    /// UTF-8 of a body; `send` is rejected above, the body of a trigger is cut.
    public var bodyBytesMax = 4_096
    /// Names and values of `data` together.
    public var dataBytesMax = 4_096
    /// A collapse key, an idempotency key, a trigger's id, an app, a locale.
    public var keyBytesMax = 256
    /// UTF-8 of a uid; every uid of auth by default.
    public var uidBytesMax = UserIDLimits.bytesMax
    /// Seconds that a notification may be worth delivering.
    public var timeToLiveSecondsMax = 28 * 24 * 3_600
    /// Deliveries that wait; at the limit, each new one replaces the oldest of the user with the most.
    public var pendingMax = 1_000_000
    /// Of how many waiting deliveries of one user it is taken account when deliveries to many devices are made: more of
    /// them delay no others.
    var pendingShareMax: Int { max(1, min(100, pendingMax / 64)) }
    /// Entries of one page of a list.
    public var pageMax = 1_000
    /// Subscriptions of `notifier.follow`.
    public var followersMax = 64
    /// Changes of one database that wait to be written down; at the limit, its feed pauses.
    public var changesPerBatchMax = 1_024
    /// Bytes on disk of the changes of one database whose notifications are not all accepted yet; at the limit, the
    /// writer with the most loses its oldest.
    public var backlogBytesMax = 256 << 20
    /// Keys that are read of one node whose children are the recipients of a trigger.
    public var recipientKeysMax = 100_000
    /// Bytes of all triggers together: waiting changes, recipients that were read, running transactions. At the limit,
    /// feeds pause; the notifications of a change are written in as many transactions as needed.
    public var triggerBytesMax = 64 << 20
    /// Notifications that a phone or browser is sent at once; those beyond wait, and those of one thread become one.
    public var deviceBurstMax = 10
    /// Milliseconds in which a phone or browser may be sent one more; 0: it is always sent all.
    public var deviceIntervalMs = 3_000
    /// The same of all phones and browsers of one user.
    public var userBurstMax = 30
    /// Milliseconds in which a user may be sent one more; 0: a user is always sent all.
    public var userIntervalMs = 1_000
    /// Quiet windows of one user.
    public var quietWindowsMax = 14
    /// Threads that one user mutes.
    public var mutesMax = 1_000
    /// Categories of the service, removed ones that were used included.
    public var categoriesMax = 256
    /// Actions of a category.
    public var categoryActionsMax = 8
    /// A category as JSON.
    public var categoryBytesMax = 16_384
    /// UTF-8 of the text of a response.
    public var replyTextBytesMax = 4_096
    /// Effects of one user that are not done yet; a response with a further one is refused.
    public var effectsPerUserMax = 32
    /// Reports of one user that wait for one receiver of actions; a response with a further one is refused. Those
    /// beside it whose effects are not done yet.
    public var reportsPerUserMax = 256
    /// UTF-8 of the texts that an effect writes.
    public var effectBytesMax = 65_536
    /// Milliseconds that `notifier.respond` waits for an effect.
    public var effectWaitMsMax = 10_000
    /// Threads of one user with a count; above, the count that has not changed for the longest time goes.
    public var threadsPerUserMax = 1_000
    /// Topics of one user; a further one is refused.
    public var topicsPerUserMax = 1_000
    /// Devices of one `send` whose deliveries are made at once; those of more, and of a topic, are made in pages of at
    /// most so many.
    public var deliveriesAtOnceMax = 1_000
    /// Notifications whose deliveries are still to be made in pages; a further one is refused.
    public var fanOutsMax = 1_000
    /// Threads of one mailbox that have e-mails of their own at a time; what comes for further ones goes together.
    public var mailThreadsMax = 8

    public init() {}

    public static let all: [Limit<NotifierLimits>] = [
        Limit(
            "devices-per-user-max", \.devicesPerUserMax, 1...10_000,
            "devices of one user; one more takes the place of the one that was not registered for the longest time"),
        Limit(
            "token-devices-max", \.tokenDevicesMax, 1...10_000_000,
            "devices without a user, of tokens named in a trigger or `send`; above it the longest unused go"),
        Limit(
            "recipients-max", \.recipientsMax, 1...100_000, "users, devices or tokens named in one `send` or trigger"),
        Limit(
            "deliveries-per-notification-max", \.deliveriesPerNotificationMax, 1...100_000,
            "devices of one notification of a trigger; more are left out"),
        Limit("triggers-max", \.triggersMax, 1...100_000, "triggers of the service"),
        Limit("types-max", \.typesMax, 1...100_000, "types of the service"),
        Limit("type-fields-max", \.typeFieldsMax, 1...1_000, "fields of a type"),
        Limit("locales-max", \.localesMax, 1...1_000, "locales of one notification, trigger or type"),
        Limit(
            "localized-bytes-max", \.localizedBytesMax, 16...1_048_576,
            "texts of all locales of one notification, trigger or type together, in bytes"),
        Limit(
            "title-bytes-max", \.titleBytesMax, 16...65_536,
            "longest title, in bytes; a longer one is refused, and cut if a trigger makes it"),
        Limit(
            "body-bytes-max", \.bodyBytesMax, 16...65_536,
            "longest body, in bytes; a longer one is refused, and cut if a trigger makes it"),
        Limit(
            "data-bytes-max", \.dataBytesMax, 16...65_536, "names and values of `data` of one notification, in bytes"),
        Limit(
            "key-bytes-max", \.keyBytesMax, 16...1_024,
            "longest collapse key, idempotency key, trigger id, app or locale, in bytes"),
        Limit("uid-bytes-max", \.uidBytesMax, 1...1_024, "longest uid, in bytes"),
        Limit(
            "ttl-seconds-max", \.timeToLiveSecondsMax, 1...315_360_000,
            "longest time to live of a notification, in seconds; a longer one is cut to it"),
        Limit(
            "pending-max", \.pendingMax, 1...1_000_000_000,
            "deliveries that wait; at the limit, each new one replaces the oldest of the user with the most"),
        Limit("page-max", \.pageMax, 1...10_000, "entries on one page of a list"),
        Limit("followers-max", \.followersMax, 0...10_000, "subscriptions of notifier.follow"),
        Limit(
            "changes-per-batch-max", \.changesPerBatchMax, 1...10_000,
            "changes of one database that wait to be written down before its feed pauses"),
        Limit(
            "trigger-backlog-bytes-max", \.backlogBytesMax, 1 << 20...1 << 40,
            "bytes on disk of changes of one database that wait for their notifications; at the limit, the writer with "
                + "the most loses the oldest"),
        Limit(
            "recipient-keys-max", \.recipientKeysMax, 1...10_000_000,
            "keys of one node whose children are the recipients of a trigger"),
        Limit(
            "trigger-bytes-max", \.triggerBytesMax, 1 << 20...1 << 40,
            "memory of all triggers together, in bytes: waiting changes, recipients, running transactions"),
        Limit(
            "device-burst-max", \.deviceBurstMax, 1...10_000,
            "notifications that a phone or browser is sent at once; those of one thread that wait become one"),
        Limit(
            "device-interval-ms", \.deviceIntervalMs, 0...3_600_000,
            "milliseconds in which a phone or browser may be sent one more; 0: it is always sent all"),
        Limit(
            "user-burst-max", \.userBurstMax, 1...10_000,
            "notifications that all phones and browsers of a user are sent at once"),
        Limit(
            "user-interval-ms", \.userIntervalMs, 0...3_600_000,
            "milliseconds in which a user may be sent one more; 0: a user is always sent all"),
        Limit("quiet-windows-max", \.quietWindowsMax, 1...1_000, "quiet windows of one user"),
        Limit("mutes-max", \.mutesMax, 1...100_000, "threads that one user mutes"),
        Limit(
            "categories-max", \.categoriesMax, 1...10_000,
            "categories of the service, removed ones that were used included"),
        Limit("category-actions-max", \.categoryActionsMax, 1...64, "actions of a category"),
        Limit("category-bytes-max", \.categoryBytesMax, 256...1 << 20, "a category as JSON, in bytes"),
        Limit("reply-text-bytes-max", \.replyTextBytesMax, 16...65_536, "longest text of a response, in bytes"),
        Limit(
            "effects-per-user-max", \.effectsPerUserMax, 1...10_000,
            "effects of one user that are not done yet; a response with a further one is refused"),
        Limit(
            "reports-per-user-max", \.reportsPerUserMax, 1...1_000_000,
            "reports of one user that wait for one receiver of actions; a response with a further one is refused"),
        Limit(
            "effect-bytes-max", \.effectBytesMax, 256...16 << 20,
            "texts that the effect of an action writes, in bytes"),
        Limit(
            "effect-wait-ms-max", \.effectWaitMsMax, 0...60_000,
            "milliseconds that notifier.respond waits for an effect"),
        Limit(
            "threads-per-user-max", \.threadsPerUserMax, 1...100_000,
            "threads of one user that count for the badge; above it the longest unchanged count goes"),
        Limit("topics-per-user-max", \.topicsPerUserMax, 1...100_000, "topics of one user; a further one is refused"),
        Limit(
            "deliveries-at-once-max", \.deliveriesAtOnceMax, 1...100_000,
            "devices of one `send` whose deliveries are made at once; those of more are made in pages"),
        Limit(
            "fan-outs-max", \.fanOutsMax, 1...100_000,
            "notifications whose deliveries are still to be made in pages; a further one is refused"),
        Limit(
            "mail-threads-max", \.mailThreadsMax, 1...1_000,
            "threads of one mailbox that have e-mails of their own at a time; what comes for further ones goes together"
        ),
    ]
}

extension NotifierLimits {
    /// How long a notification is delivered, in milliseconds: for `time`, cut to the limit.
    func timeToLive(_ time: Int64) -> Int64 { min(time, Int64(timeToLiveSecondsMax) * 1_000) }
}

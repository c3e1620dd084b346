// The errors that the methods of the notifier may return besides those of every method.

extension [MethodError] {
    fileprivate static let unknownDevice = [MethodError(.notFound, "device_not_found")]
    fileprivate static let unknownTrigger = [MethodError(.notFound, "trigger_not_found")]
    fileprivate static let unknownApp = [
        MethodError(.invalidArgument, "invalid_key"), MethodError(.notFound, "app_not_found"),
    ]
    fileprivate static let page = [MethodError(.invalidArgument, "invalid_limit", "invalid_page")]
    fileprivate static let triggersChange = [MethodError(.unavailable, "busy")]

    /// Of what a type says of data.
    fileprivate static let payload = [
        MethodError(.invalidArgument, "invalidType"),
        MethodError(.invalidArgument, "invalidData", data: ["field"]),
    ]

    /// Of methods that call messages.
    fileprivate static let callToMessages = [
        MethodError(.failedPrecondition, "no_service_key"), MethodError(.notFound, "database_not_found"),
        MethodError(.unavailable, "cannot_connect", "connection_lost", "timeout"),
    ]

    fileprivate static let deadDeliveries = [
        MethodError(.notFound, "delivery_not_found"),
        MethodError(.invalidArgument, "invalid_choice", "invalid_recipients", "invalid_key"),
    ]
}

extension Notifier.Devices.Register {
    public static let errors = [
        MethodError(
            .invalidArgument, "unsupported_platform", "invalid_url", "plain_http", "port_not_allowed",
            "private_address", "unresolvable_host", "invalid_secret", "invalid_key", "invalid_token"),
        MethodError(.failedPrecondition, "app_not_configured", "email_not_verified"),
    ]
}
extension Notifier.Webpush.Key {
    public static let errors = [
        MethodError(.invalidArgument, "invalid_key"), MethodError(.failedPrecondition, "app_not_configured"),
    ]
}
extension Notifier.Apps.Check { public static let errors: [MethodError] = .unknownApp }
extension Notifier.Apps.Resume { public static let errors: [MethodError] = .unknownApp }
extension Notifier.Apps.Reload {
    public static let errors = [MethodError(.failedPrecondition, "no_apps_file", "invalid_apps_file")]
}
extension Notifier.Devices.List { public static let errors: [MethodError] = .page }
extension Notifier.Devices.RotateSecret {
    public static let errors: [MethodError] = .joined(
        .unknownDevice,
        [MethodError(.invalidArgument, "invalid_secret"), MethodError(.failedPrecondition, "no_secret")])
}
extension Notifier.Devices.Unregister { public static let errors: [MethodError] = .unknownDevice }
extension Notifier.Triggers.Set {
    public static let errors: [MethodError] = .joined(
        [
            MethodError(
                .invalidArgument, "invalid_trigger", "invalid_pattern", "invalid_database", "invalid_recipients",
                "invalid_template", "invalid_condition", "empty_notification", "invalid_ttl", "invalid_key", "too_big",
                "invalid_badge", "invalid_url", "unsupported_platform", "invalid_platform_member", "invalid_localized",
                "invalid_data", "invalid_summary", "invalid_presence", "unknown_category"),
            MethodError(.resourceExhausted, "too_many_triggers"),
        ], .payload, .callToMessages, .triggersChange, [MethodError(.unavailable, "messages_refuses_notifier")])
}
extension Notifier.Triggers.Remove {
    public static let errors: [MethodError] = .joined(.unknownTrigger, .triggersChange)
}
extension Notifier.Triggers.Test {
    public static let errors: [MethodError] = .joined(
        .unknownTrigger, [MethodError(.invalidArgument, "invalid_path", "invalid_key", "too_deep")], .payload,
        .callToMessages)
}
extension Notifier.Types.Set {
    public static let errors = [
        MethodError(
            .invalidArgument, "invalid_key", "invalid_field", "invalid_data", "invalid_template", "empty_notification",
            "invalid_localized", "too_big", "unknown_category"),
        MethodError(.failedPrecondition, "type_in_use"),
        MethodError(.resourceExhausted, "too_many_types"),
    ]
}
extension Notifier.Types.Remove {
    public static let errors = [
        MethodError(.notFound, "type_not_found"), MethodError(.failedPrecondition, "type_in_use"),
    ]
}
extension Notifier.Send {
    public static let errors: [MethodError] = .joined(
        [
            MethodError(
                .invalidArgument, "invalid_recipients", "empty_notification", "invalid_ttl", "invalid_key", "too_big",
                "invalid_badge", "invalid_url", "invalid_platform_member", "invalid_token", "unsupported_platform",
                "invalid_localized", "invalid_data", "invalid_summary", "unknown_category"),
            MethodError(.failedPrecondition, "device_disabled", "app_not_configured"),
            MethodError(.resourceExhausted, "too_many_fan_outs"),
            MethodError(.alreadyExists, "idempotency_key_reused"),
        ], .payload, .unknownDevice)
}
extension Notifier.SendToDevice {
    public static let errors: [MethodError] = .joined(
        [
            MethodError(
                .invalidArgument, "invalid_recipients", "invalid_payload", "invalid_badge", "invalid_ttl",
                "invalid_key", "invalid_data", "too_big"),
            MethodError(.failedPrecondition, "app_not_configured"),
            MethodError(.resourceExhausted, "too_many_fan_outs"),
        ], .payload)
}
extension Notifier.Status {
    public static let errors: [MethodError] = .joined([MethodError(.notFound, "notification_not_found")], .page)
}
extension Notifier.Follow { public static let errors: [MethodError] = .follow }
extension Notifier.Unfollow { public static let errors: [MethodError] = .unfollow }
extension Notifier.Backup { public static let errors: [MethodError] = .backup }
extension Notifier.Badges.Get {
    public static let errors = [MethodError(.invalidArgument, "invalid_key")]
}
extension Notifier.Badges.Set {
    public static let errors = [MethodError(.invalidArgument, "invalid_key", "invalid_count")]
}
extension Notifier.Withdraw {
    public static let errors = [
        MethodError(.invalidArgument, "invalid_key", "invalid_choice"),
        MethodError(.notFound, "notification_not_found"),
    ]
}
extension Notifier.Dead.List { public static let errors: [MethodError] = .page }
extension Notifier.Dead.Replay { public static let errors: [MethodError] = .deadDeliveries }
extension Notifier.Dead.Drop { public static let errors: [MethodError] = .deadDeliveries }
extension Notifier.Preferences.Get { public static let errors = [MethodError(.invalidArgument, "invalid_key")] }
extension Notifier.Preferences.Set {
    public static let errors = [
        MethodError(
            .invalidArgument, "invalid_key", "invalid_time_zone", "invalid_quiet", "invalid_mute",
            "unsupported_platform"),
        MethodError(.resourceExhausted, "too_many_mutes"),
    ]
}

extension Notifier.Categories.Set {
    public static let errors = [
        MethodError(
            .invalidArgument, "invalid_key", "invalid_action", "invalid_localized", "invalid_quick_reply",
            "invalid_effect", "invalid_mute", "invalid_template", "invalid_path", "invalid_database", "too_deep",
            "invalid_value", "invalid_priority", "invalid_server_value", "string_too_long", "conflicting_paths",
            "too_big", "invalid_url", "plain_http", "port_not_allowed", "private_address", "unresolvable_host",
            "unsupported_platform"),
        MethodError(.failedPrecondition, "category_used", "no_service_key"),
        MethodError(.resourceExhausted, "too_many_categories"),
    ]
}
extension Notifier.Categories.Get { public static let errors = [MethodError(.invalidArgument, "invalid_key")] }
extension Notifier.Categories.Remove {
    public static let errors = [
        MethodError(.notFound, "category_not_found"), MethodError(.failedPrecondition, "category_in_use"),
    ]
}
extension Notifier.Respond {
    public static let errors = [
        MethodError(
            .invalidArgument, "invalid_choice", "invalid_quick_reply", "unknown_action", "no_text_input",
            "text_not_allowed", "text_required", "too_big", "other_notification", "invalid_key"),
        MethodError(
            .unauthenticated, "invalid_reply_token", "reply_token_expired", "reply_token_revoked", "user_disabled",
            "user_not_found"),
        MethodError(.permissionDenied, "not_recipient"),
        MethodError(.notFound, "notification_not_found"),
        MethodError(.failedPrecondition, "already_responded", data: ["action"]),
        MethodError(.resourceExhausted, "too_many_effects", "too_many_reports", data: ["retryAfterMs"]),
    ]
}
extension Notifier.QuickReplies.Get {
    public static let errors: [MethodError] = .joined(
        [MethodError(.invalidArgument, "invalid_key")], .callToMessages,
        [MethodError(.unavailable, "messages_refuses_notifier")])
}
extension Notifier.QuickReplies.Set {
    public static let errors: [MethodError] = .joined(
        [MethodError(.invalidArgument, "invalid_quick_reply", "invalid_key")], .callToMessages,
        [MethodError(.unavailable, "messages_refuses_notifier")])
}
extension Notifier.Topics.Subscribe {
    public static let errors = [
        MethodError(.invalidArgument, "invalid_key"), MethodError(.resourceExhausted, "too_many_topics"),
    ]
}
extension Notifier.Topics.Unsubscribe {
    public static let errors = [MethodError(.invalidArgument, "invalid_key")]
}
extension Notifier.Topics.List {
    public static let errors: [MethodError] = .joined([MethodError(.invalidArgument, "invalid_key")], .page)
}
extension Notifier.Outbox.List {
    public static let errors: [MethodError] = .joined([MethodError(.invalidArgument, "invalid_key")], .page)
}

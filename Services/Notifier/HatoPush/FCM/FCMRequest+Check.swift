public import HatoModel

extension FCMRequest {
    /// Checks the values for the receiving app. Throws `invalid_data` for a name that FCM keeps for itself: `from`,
    /// `message_type`, and what begins with `google` or `gcm`.
    public static func check(data: [String: String]) throws(ArgumentError) {
        for name in data.keys.sorted() where isReserved(name) {
            throw ArgumentError(
                reason: "invalid_data",
                "\(MemberKind.path("data", name)) cannot be sent over FCM, which keeps from, message_type and names "
                    + "that begin with google or gcm")
        }
    }

    /// Checks `platforms.fcm`, which takes the place of what is made. Throws `invalid_platform_member` for a member
    /// that is not known or of the wrong kind, with its path; `invalid_data` for a name in `data` that FCM keeps.
    public static func check(platformMembers: JSONValue) throws(ArgumentError) {
        guard platformMembers.encoded.count <= membersBytesMax else {
            throw MemberKind.error("platforms.fcm should have at most \(membersBytesMax) bytes as JSON")
        }
        try messageKind.check(platformMembers, at: "platforms.fcm")
        for data in [platformMembers["data"], platformMembers["android"]?["data"]] {
            let names = data?.object?.members.map { ($0.name, "") } ?? []
            let named = Dictionary(names) { first, _ in first }
            try check(data: named)
            try HatoMember.check(data: named)
        }
    }

    /// They have to fit into a message with its text.
    private static let membersBytesMax = 3_072

    private static func isReserved(_ name: String) -> Bool {
        name == "from" || name == "message_type" || name.hasPrefix("google") || name.hasPrefix("gcm")
    }

    // The members of `Message` of FCM HTTP v1, without `name` and the targets.

    private static let messageKind = MemberKind.object([
        "data": .texts, "notification": .object(["title": .text, "body": .text, "image": .text]),
        "android": androidKind, "webpush": webpushKind, "apns": apnsKind,
        "fcm_options": .object(["analytics_label": .text]),
    ])

    private static let duration = MemberKind.checked("seconds such as 3600s or 1.5s", { isDuration($0) })

    private static let androidKind = MemberKind.object([
        "collapse_key": .text, "priority": .choice(["NORMAL", "HIGH"]),
        "ttl": .checked("seconds from 0s to 2419200s, such as 3600s", { isDuration($0, secondsMax: 2_419_200) }),
        "restricted_package_name": .text, "data": .texts, "notification": androidNotificationKind,
        "fcm_options": .object(["analytics_label": .text]), "direct_boot_ok": .flag, "bandwidth_constrained_ok": .flag,
        "restricted_satellite_ok": .flag,
    ])

    private static let androidNotificationKind = MemberKind.object([
        "title": .text, "body": .text, "icon": .text, "color": .checked("a colour such as #3366ff", isColour),
        "sound": .text, "tag": .text, "click_action": .text, "body_loc_key": .text, "body_loc_args": .list(of: .text),
        "title_loc_key": .text, "title_loc_args": .list(of: .text), "channel_id": .text, "ticker": .text,
        "sticky": .flag, "event_time": .text, "local_only": .flag,
        "notification_priority": .choice(
            ["MIN", "LOW", "DEFAULT", "HIGH", "MAX"].map { "PRIORITY_\($0)" }),
        "default_sound": .flag, "default_vibrate_timings": .flag, "default_light_settings": .flag,
        "vibrate_timings": .list(of: duration), "visibility": .choice(["PRIVATE", "PUBLIC", "SECRET"]),
        "notification_count": .integer(0...Int64(Int32.max)), "light_settings": .any, "image": .text,
        "bypass_proxy_notification": .flag, "proxy": .choice(["ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
    ])

    private static let webpushKind = MemberKind.object([
        "headers": .texts, "data": .texts, "notification": .any,
        "fcm_options": .object(["link": .link, "analytics_label": .text]),
    ])

    private static let apnsKind = MemberKind.object([
        "headers": .texts, "payload": .any, "live_activity_token": .text,
        "fcm_options": .object(["analytics_label": .text, "image": .text]),
    ])

    private static func isDuration(_ text: String, secondsMax: Double = 315_576_000_000) -> Bool {
        let digits = text.utf8.dropLast()
        guard text.utf8.last == UInt8(ascii: "s"), (1...24).contains(digits.count),
            digits.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E }),
            let seconds = Double(String(decoding: digits, as: UTF8.self))
        else { return false }
        return seconds <= secondsMax
    }

    private static func isColour(_ text: String) -> Bool {
        text.utf8.count == 7 && text.hasPrefix("#") && text.dropFirst().allSatisfy(\.isHexDigit)
    }
}

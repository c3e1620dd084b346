public import HatoModel

extension APNsRequest {
    /// The member of a payload that is Apple's.
    static let apsName = "aps"

    /// Checks the values for the receiving app. Throws `invalid_data` for the name `aps`, which is Apple's.
    public static func check(data: [String: String]) throws(ArgumentError) {
        guard data[apsName] == nil else {
            throw ArgumentError(reason: "invalid_data", "data.aps cannot be sent over APNs, which keeps this name")
        }
    }

    /// Checks `platforms.apns`, which takes the place of what is made. Throws `invalid_platform_member` for a member
    /// that is not known or of the wrong kind, with its path.
    public static func check(platformMembers: JSONValue) throws(ArgumentError) {
        guard platformMembers.encoded.count <= membersBytesMax else {
            throw MemberKind.error("platforms.apns should have at most \(membersBytesMax) bytes as JSON")
        }
        try membersKind.check(platformMembers, at: "platforms.apns")
        guard platformMembers["payload"]?[apsName] == nil else {
            throw MemberKind.error("platforms.apns.payload.aps is not known; its members belong in platforms.apns.aps")
        }
        if platformMembers["headers"]?["apns-push-type"]?.string == "background",
            let priority = platformMembers["headers"]?["apns-priority"]?.string, priority != "5"
        {
            throw MemberKind.error(
                "platforms.apns.headers.apns-priority should be 5, because apns-push-type is background")
        }
    }

    /// They have to fit into a payload with its text.
    private static let membersBytesMax = 3_072

    private static let membersKind = MemberKind.object([
        "headers": .object(headerKinds), "aps": .object(apsKinds), "payload": .any,
    ])

    /// `apns-id` is not among them: by it APNs and we know a repetition.
    static let headerKinds: [String: MemberKind] = [
        "apns-topic": .checked("the bundle id, maybe with a suffix", APNsCredentials.isTopic),
        "apns-push-type": .choice(topicSuffixes.keys.sorted()),
        "apns-priority": .choice(["10", "5", "1"]),
        "apns-expiration": .checked("seconds since 1970 as a text, or 0", isSeconds),
        "apns-collapse-id": .checked("1 to 64 visible characters of ASCII", isCollapseID),
    ]

    private static let apsKinds: [String: MemberKind] = [
        "alert": .textOr([
            "title": .text, "subtitle": .text, "body": .text, "launch-image": .text, "title-loc-key": .text,
            "title-loc-args": .list(of: .text), "subtitle-loc-key": .text, "subtitle-loc-args": .list(of: .text),
            "loc-key": .text, "loc-args": .list(of: .text), "action-loc-key": .text,
        ]),
        "badge": .integer(0...Int64(Int32.max)),
        "sound": .textOr(["critical": .integer(0...1), "name": .text, "volume": .number(0...1)]),
        "thread-id": .text, "category": .text, "content-available": .integer(1...1), "mutable-content": .integer(1...1),
        "target-content-id": .text, "interruption-level": .choice(Notifier.InterruptionLevel.allCases.map(\.rawValue)),
        "relevance-score": .number(0...1), "filter-criteria": .text,
        // Of live activities.
        "timestamp": .integer(seconds), "event": .choice(["start", "update", "end"]), "content-state": .any,
        "stale-date": .integer(seconds), "dismissal-date": .integer(seconds), "attributes-type": .text,
        "attributes": .any,
    ]

    private static let seconds: ClosedRange<Int64> = 0...9_999_999_999

    private static func isSeconds(_ text: String) -> Bool {
        text == "0"
            || (1...10).contains(text.utf8.count) && !text.hasPrefix("0")
                && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isCollapseID(_ text: String) -> Bool {
        (1...collapseIDBytesMax).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

import HatoModel

/// What members of Apple's own (`aps`) do on a device where a push has no text.
enum AppleMembers {
    /// Whether they show or play something: a push with them is none in the background.
    ///
    /// - Parameter aps: the members; nil: there are none.
    static func isShown(_ aps: JSONValue?) -> Bool { aps?["alert"] != nil || aps?["sound"] != nil }
}

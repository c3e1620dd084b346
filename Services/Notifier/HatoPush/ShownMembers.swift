public import HatoModel

extension Notifier.PlatformMembers {
    /// Whether the members of a platform's own show something on its devices where a push has no text: texts that the
    /// app has itself among them.
    public func isShown(on platform: Notifier.Platform) -> Bool {
        switch platform {
        case .apns: ShownMembers.showAlert(aps: apns?["aps"])
        case .fcm:
            ShownMembers.showOnAndroid(fcm) || fcm?["webpush"]?["notification"]?.object != nil
                || ShownMembers.showAlert(aps: fcm?["apns"]?["payload"]?["aps"])
        case .webpush: ShownMembers.title(ofBrowser: webpush?["notification"]) != nil
        case .webhook, .email: false
        }
    }
}

extension DeliveryContent {
    /// Whether a device of the platform shows something of it. What shows nothing is a silent push: it is not counted,
    /// and nothing of it can be responded to or withdrawn.
    public func isShown(on platform: Notifier.Platform) -> Bool {
        [text.title, text.body].contains { $0?.isEmpty == false } || neutralText != nil
            || platforms?.isShown(on: platform) == true
    }
}

/// What members of the platforms' own do on a device where a push has no text.
enum ShownMembers {
    /// Whether they show or play something on Apple's devices: a push with them is none in the background.
    ///
    /// - Parameter aps: the members; nil: there are none.
    static func showAlert(aps: JSONValue?) -> Bool { aps?["alert"] != nil || aps?["sound"] != nil }

    /// Whether they show something on Android.
    ///
    /// - Parameter fcm: the members of the message; nil: there are none.
    static func showOnAndroid(_ fcm: JSONValue?) -> Bool {
        fcm?["notification"]?.object != nil || fcm?["android"]?["notification"]?.object != nil
    }

    /// The title that a browser shows: a body without one takes its place. Nil: it shows nothing.
    ///
    /// - Parameter notification: the members of the notification; nil: there are none.
    static func title(ofBrowser notification: JSONValue?) -> String? {
        [notification?["title"]?.string, notification?["body"]?.string].lazy.compactMap(\.self).first { !$0.isEmpty }
    }
}

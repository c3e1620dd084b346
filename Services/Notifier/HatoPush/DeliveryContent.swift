public import HatoModel

/// What a delivery carries.
public struct DeliveryContent: Sendable, Hashable {
    /// The id of the notification.
    public var notification: String
    /// The id of the device.
    public var device: String
    /// The user of the device; empty for a token without a user.
    public var uid: String
    /// Title and body, in the language of the device. Without both, the push is silent unless `platforms`
    /// show something.
    public var text: Notifier.NotificationText
    /// What the receiving app gets, by name.
    public var data: [String: String]
    /// The id of the trigger that made it; nil for `notifier.send`.
    public var trigger: String?
    /// The path of the change that fired the trigger; nil without one.
    public var path: String?
    /// A newer notification with this key replaces it.
    public var collapseKey: String?
    /// How it is shown.
    public var appearance = Appearance()
    /// Members of the platforms' own, which take the place of those that are made here.
    public var platforms: Notifier.PlatformMembers?
    /// What the app needs of us.
    public var hato = HatoMember()
    /// What Apple's devices and browsers show if the app does not fetch what the notification says, which the push does
    /// not carry; nil: the push carries it. E-mails say so in words of their own.
    public var neutralText: String?
    /// Of an e-mail: all that it says, this text among it; nil: this text alone.
    public var digest: Digest?
    /// Of a webhook that reports an action, `uid` being the user that chose it; nil: it is a notification.
    public var choice: Choice?

    /// The action of a notification that a user chose, beside the `data` of that notification.
    public struct Choice: Sendable, Hashable {
        /// The id of the notification.
        public var notification: String
        /// The device on which it was chosen; nil: it is not known.
        public var device: String?
        /// The category of the action; nil: it is not known.
        public var category: String?
        /// The id of the action.
        public var action: String
        /// What the user wrote, or the quick reply that the user chose.
        public var text: String?
        /// The thread of the notification.
        public var thread: String?
        /// When it was chosen, in milliseconds since 1970.
        public var at: Int64

        /// An action of a notification, without more.
        public init(notification: String, action: String, at: Int64) {
            (self.notification, self.action, self.at) = (notification, action, at)
        }
    }

    /// What an e-mail gathers of a thread, in the language of the device.
    public struct Digest: Sendable, Hashable {
        /// What it shows, the newest first.
        public var entries: [Entry]
        /// How many older ones it does not show.
        public var more = 0
        /// How many there are besides of which it may show no words.
        public var withheld = 0
        /// Whether there may be more of these than were counted.
        public var isAtLeast = false
        /// The language of the device; nil: that of the app.
        public var locale: String?

        /// A notification of it.
        public struct Entry: Sendable, Hashable {
            /// Its text, in the language of the device.
            public var text: Notifier.NotificationText
            /// The https URL that belongs to it.
            public var link: String?

            /// A notification with a text.
            public init(text: Notifier.NotificationText, link: String? = nil) {
                self.text = text
                self.link = link
            }
        }

        /// A digest that shows all.
        public init(entries: [Entry], locale: String? = nil) {
            self.entries = entries
            self.locale = locale
        }
    }

    /// How a notification is shown.
    public struct Appearance: Sendable, Hashable {
        /// How urgent it is.
        public var priority = Notifier.Priority.high
        /// The name of a sound; nil: none is played.
        public var sound: String?
        /// The number on the app's icon; nil: it stays.
        public var badge: Int?
        /// Groups notifications: those of one chat.
        public var thread: String?
        /// The https URL of an image.
        public var image: String?
        /// The https URL that a tap opens.
        public var link: String?
        /// How much it interrupts; nil: the platform's default.
        public var interruptionLevel: Notifier.InterruptionLevel?
        /// The set of actions; nil: none.
        public var category: Category?

        /// High priority, and nothing else.
        public init() {}
    }

    /// A set of actions, in the language of the device.
    public struct Category: Sendable, Hashable {
        /// The id of the category.
        public var id: String
        /// Its buttons, in their order.
        public var actions: [Action]

        /// A category with these buttons.
        public init(id: String, actions: [Action]) {
            self.id = id
            self.actions = actions
        }
    }

    /// A button of a notification.
    public struct Action: Sendable, Hashable {
        /// The id of the action.
        public var id: String
        /// What the button says.
        public var title: String
        /// Whether it opens the app; otherwise it works in the background.
        public var opensApp: Bool
        /// Whether it destroys something, and is shown so.
        public var isDestructive: Bool
        /// Whether the device must be unlocked.
        public var requiresAuthentication: Bool
        /// Present when the action takes a text.
        public var input: Input?
        /// The index of the quick reply that it stands for; nil: it is none.
        public var quickReply: Int?

        /// The texts of a field for text.
        public struct Input: Sendable, Hashable {
            /// What the button says that sends the text; nil: the platform's text.
            public var button: String?
            /// What the empty field says.
            public var placeholder: String?

            /// A field for text.
            public init(button: String? = nil, placeholder: String? = nil) {
                self.button = button
                self.placeholder = placeholder
            }
        }

        /// An action that destroys nothing and takes no text.
        public init(id: String, title: String, opensApp: Bool = false) {
            self.id = id
            self.title = title
            self.opensApp = opensApp
            isDestructive = false
            requiresAuthentication = false
        }
    }

    public init(notification: String, device: String, uid: String, text: Notifier.NotificationText) {
        self.notification = notification
        self.device = device
        self.uid = uid
        self.text = text
        data = [:]
    }
}

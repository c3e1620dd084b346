extension Notifier {
    /// What an app has for one platform.
    public struct AppProvider: FieldObject, Hashable {
        public var platform: Platform
        public var status: ProviderStatus
        public var problem: String?
        public var since: Int?

        public static let fields = Fields<Self>(
            blank: Self(platform: .apns, status: .ready),
            .required("platform", \.platform, "The platform"),
            .required(
                "status", \.status,
                """
                `ready`; `paused`: the provider does not respond or refuses the credentials, deliveries wait and one is \
                tried from time to time; `stopped`: so many tokens that had worked were refused \
                that the configuration must be wrong, deliveries wait until `notifier.apps.resume`; `unchecked`: no \
                delivery was attempted since the start or `notifier.apps.reload`, of Web Push: none arrived
                """),
            .optional(
                "problem", \.problem,
                "What is wrong; absent if nothing is known to be. Beside `ready`: some devices are not reached"),
            .optional("since", \.since, "Since when, in milliseconds since 1970"))

        public init(platform: Platform, status: ProviderStatus) {
            self.platform = platform
            self.status = status
        }
    }

    /// Whether deliveries go to a provider.
    public enum ProviderStatus: String, FieldChoice {
        case ready, paused, stopped, unchecked
    }

    /// An app of the setting `apps-file`.
    public struct App: FieldObject, Hashable {
        public var app: String
        public var providers: [AppProvider]

        public static let fields = Fields<Self>(
            blank: Self(app: "", providers: []),
            .required("app", \.app, "The id of the app"),
            .required("providers", \.providers, "What it has credentials for"))

        public init(app: String, providers: [AppProvider]) {
            self.app = app
            self.providers = providers
        }
    }
}

extension Notifier.Apps {
    /// The apps, in the order of their ids.
    public struct Listing: FieldObject, Hashable {
        public var apps: [Notifier.App]

        public static let fields = Fields<Self>(
            blank: Self(apps: []),
            .required("apps", \.apps, "The apps in the order of their ids"))

        public init(apps: [Notifier.App]) { self.apps = apps }

        static let example = Listing(apps: [
            Notifier.App(
                app: "default", providers: [Notifier.AppProvider(platform: .apns, status: .ready)])
        ])
    }

    /// Lists the apps and what is known of their providers.
    public struct List: RPCRequest {
        public typealias Result = Listing
        public static let method = "notifier.apps.list"
        public static let summary =
            "Lists the apps of the setting `apps-file`, and whether deliveries go to their providers"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public static let example = RPCExample(List(), Listing.example)
    }

    /// Calls the providers with a push that must be refused for its token only.
    public struct Check: RPCRequest {
        public typealias Result = Listing
        public static let method = "notifier.apps.check"
        public static let summary = """
            Calls the providers of all apps, or of one, with a push that must be refused for its token only, and \
            says what is wrong
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public static let isSlow = true

        public var app: String?

        public static let fields = Fields<Self>(
            blank: Self(), .optional("app", \.app, "The id of the app; all apps when absent", example: "default"))

        public init(app: String? = nil) { self.app = app }

        public static let example = RPCExample(Check(), Listing.example)
    }

    /// Reads the setting `apps-file` again.
    public struct Reload: RPCRequest {
        public typealias Result = Listing
        public static let method = "notifier.apps.reload"
        public static let summary = """
            Reads the file of the setting `apps-file` again; when it is wrong nothing changes. Providers that were \
            paused are called again
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public static let example = RPCExample(Reload(), Listing.example)
    }

    /// Lets deliveries that wait go on.
    public struct Resume: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.apps.resume"
        public static let summary = "Lets the deliveries of an app go on that is paused or stopped"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var app: String
        public var platform: Notifier.Platform?

        public static let fields = Fields<Self>(
            blank: Self(app: ""),
            .required("app", \.app, "The id of the app", example: "default"),
            .optional("platform", \.platform, "The platform; all when absent", example: .apns))

        public init(app: String, platform: Notifier.Platform? = nil) {
            self.app = app
            self.platform = platform
        }

        public static let example = RPCExample(Resume(app: "default"), Empty())
    }
}

extension Notifier.Webpush {
    /// Returns the key that browsers need to subscribe.
    public struct Key: RPCRequest {
        public static let method = "notifier.webpush.key"
        public static let summary = """
            Returns the key with which a browser subscribes: the `applicationServerKey` of \
            `pushManager.subscribe` (RFC 8292)
            """
        public static let access = Access.anyone
        public static let effect = Effect.read

        public var app: String?

        public static let fields = Fields<Self>(
            blank: Self(), .optional("app", \.app, "The id of the app; `default` when absent", example: "default"))

        public init(app: String? = nil) { self.app = app }

        public struct Result: FieldObject, Hashable {
            public var key: String

            public static let fields = Fields<Self>(
                blank: Self(key: ""),
                .required("key", \.key, "The public key: base64url of 65 bytes, a point of P-256"))

            public init(key: String) { self.key = key }
        }

        public static let example = RPCExample(
            Key(),
            Result(key: "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"))
    }
}

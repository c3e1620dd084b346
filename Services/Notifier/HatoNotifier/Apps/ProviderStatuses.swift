import HatoModel

/// What deliveries have shown of the providers of apps, since the start.
struct ProviderStatuses: Sendable {
    /// An app at one platform.
    struct Entry: Sendable {
        var app: String
        var provider: Notifier.AppProvider

        /// Such as `apns default`.
        var name: String { "\(provider.platform.rawValue) \(app)" }
        /// Such as `paused: APNs refuses the key`.
        var shown: String { "\(provider.status.rawValue): \(provider.problem ?? "")" }
        /// Whether its deliveries wait.
        var isWaiting: Bool { provider.status == .paused || provider.status == .stopped }
    }

    /// Those that had deliveries, by name.
    private(set) var entries: [Entry]

    init(_ providers: ProviderDispatcher, _ signatures: AppSignatures) async {
        let queues = await providers.statuses.map { Entry(app: $0.key.app, provider: $0.value) }
        entries = (queues + signatures.statuses.map { Entry(app: $0.key, provider: $0.value) })
            .sorted { $0.name < $1.name }
    }

    /// `unchecked` when it had no deliveries.
    func provider(of app: String, _ platform: Notifier.Platform) -> Notifier.AppProvider {
        entries.first { $0.app == app && $0.provider.platform == platform }?.provider
            ?? Notifier.AppProvider(platform: platform, status: .unchecked)
    }

    /// Those whose deliveries wait.
    var waiting: [Entry] { entries.filter(\.isWaiting) }

    /// With those of these apps that had no deliveries.
    func all(of apps: [(app: String, platforms: Set<Notifier.Platform>)]) -> [Entry] {
        let names = Set(entries.map(\.name))
        let unknown = apps.flatMap { app in
            app.platforms.map { Entry(app: app.app, provider: Notifier.AppProvider(platform: $0, status: .unchecked)) }
        }
        return entries + unknown.filter { !names.contains($0.name) }
    }
}

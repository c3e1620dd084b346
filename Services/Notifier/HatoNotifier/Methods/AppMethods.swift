import HatoModel
import HatoPush
import HatoRPC
import HatoStorage

/// `notifier.apps.…` and `notifier.webpush.key`: apps and their credentials.
struct AppMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Apps.List.self, in: &router) { methods, _, _ in await methods.list() }
        handle(Notifier.Apps.Check.self, in: &router) { methods, request, _ in try await methods.check(request.app) }
        handle(Notifier.Apps.Reload.self, in: &router) { methods, _, _ in try await methods.reload() }
        handle(Notifier.Apps.Resume.self, in: &router) { methods, request, _ in
            // Its deliveries may wait though it left the file.
            if !methods.service.providers.knows(app: request.app) { try methods.requireApp(request.app) }
            try await methods.service.providers.resume(app: request.app, request.platform)
            return Empty()
        }
        handle(Notifier.Webpush.Key.self, in: &router) { methods, request, _ in
            try methods.checks.key(request.app, "app")
            let app = request.app ?? Delivery.defaultApp
            guard let key = methods.service.apps.apps.apps[app]?.webpush?.publicKey else {
                throw NotifierError.appNotConfigured(app, .webpush)
            }
            return .init(key: key)
        }
    }

    private func requireApp(_ app: String) throws {
        try checks.key(app, "app")
        guard service.apps.apps.apps[app] != nil else { throw NotifierError.appNotFound(app) }
    }

    /// What was seen of providers while delivering.
    private func list() async -> Notifier.Apps.Listing {
        let statuses = await service.providerStatuses
        return listing { statuses.provider(of: $0, $1) }
    }

    private func listing(
        _ provider: (String, Notifier.Platform) -> Notifier.AppProvider
    ) -> Notifier.Apps.Listing {
        .init(
            apps: service.apps.apps.apps.sorted { $0.key < $1.key }.map { app, credentials in
                Notifier.App(
                    app: app,
                    providers: Notifier.Platform.allCases.filter(credentials.platforms.contains).map {
                        provider(app, $0)
                    })
            })
    }

    private func check(_ app: String?) async throws -> Notifier.Apps.Listing {
        if let app { try requireApp(app) }
        var listing = await list()
        listing.apps.removeAll { app != nil && $0.app != app }
        for (index, app) in listing.apps.enumerated() {
            // No push service of browsers can be asked without a subscription: what attempts have shown is all.
            for (number, provider) in app.providers.enumerated() where provider.platform != .webpush {
                let channel = channels.first { $0.platform == provider.platform }
                guard let problem = await channel?.problem(of: app.app) else {
                    if provider.status == .unchecked { listing.apps[index].providers[number].status = .ready }
                    continue
                }
                // A queue that is stopped has a better reason.
                if provider.status != .stopped { listing.apps[index].providers[number].problem = problem }
                if provider.status == .ready || provider.status == .unchecked {
                    listing.apps[index].providers[number].status = .paused
                }
            }
        }
        return listing
    }

    private func reload() async throws -> Notifier.Apps.Listing {
        guard let read = configuration.readApps else {
            throw RPCError.failedPrecondition(
                reason: "no_apps_file", "There is no apps file; start the notifier with --apps-file")
        }
        let apps: PushApps
        do { apps = try await OwnWebPush.adding(to: read(), store) } catch let error as StoreError {
            throw error
        } catch {
            throw RPCError.failedPrecondition(reason: "invalid_apps_file", "\(error)")
        }
        service.apps.replace(with: apps)
        service.outbox.signatures.reset()
        await service.providers.retry()
        return await list()
    }
}

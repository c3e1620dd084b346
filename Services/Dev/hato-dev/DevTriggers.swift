import HatoModel
import HatoNotifier
import HatoRPC
import HatoRuntime

/// The triggers that `--triggers` names, of those that come with the notifier.
struct DevTriggers: Sendable {
    private let requests: [Notifier.Triggers.Set]
    /// Of their notifications.
    private let categories: [Notifier.Categories.Set]

    /// Throws `SettingsError` for a name that there is not.
    init(_ settings: Settings) throws {
        let names: String = settings.text("triggers") ?? ""
        let triggers: [ShippedTriggers] = try names.split(separator: ",").map { name in
            do { return try ShippedTriggers(name: String(name.trimmingPrefix { $0 == " " })) } catch let error
                as ArgumentError
            {
                throw SettingsError("setting triggers: \(error.message)")
            }
        }
        categories = try triggers.compactMap(\.category).map { try $0.request() }
        requests = try triggers.map { try $0.request() }
    }

    /// Sets them, with an administrator key.
    func set(at configuration: RPCClientConfiguration) async throws {
        guard !requests.isEmpty else { return }
        let client = RPCClient(configuration)
        let result: Result<Void, any Error>
        do {
            for category in categories {
                do { _ = try await client.call(category) } catch let error as RPCError
                    where error.reason == "category_used"
                {
                    // Kept data has it as it was: its triggers work with it, too.
                }
            }
            for request in requests { _ = try await client.call(request) }
            result = .success(())
        } catch let error as RPCError {
            result = .failure(SettingsError("setting triggers: \(error.message)"))
        } catch { result = .failure(error) }
        await client.close()
        try result.get()
    }
}

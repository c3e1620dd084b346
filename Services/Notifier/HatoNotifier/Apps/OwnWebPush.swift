import HatoModel
import HatoPush
import HatoStorage

/// The credentials of Web Push that the notifier makes for itself, so that browsers can be reached without any
/// configuration. They are made once and kept in the store: another key would make all subscriptions useless.
enum OwnWebPush {
    private static let key = RecordKey(.own).with("webpush")
    /// The address that push services write to when something is wrong. Only the apps file can name the operator.
    private static let subject = "mailto:webpush@hato.example"

    /// The apps, of which `default` has credentials of Web Push in any case. Throws the errors of the store, and
    /// `ArgumentError` when the key there is none.
    static func adding(to apps: PushApps, _ store: any Store) async throws -> PushApps {
        guard apps.apps[Delivery.defaultApp]?.webpush == nil else { return apps }
        let new = WebPushCredentials.newKey()
        let text = try await store.write { transaction in
            if let kept = try transaction.value(key) { return String(decoding: kept, as: UTF8.self) }
            var writes = RecordWrites()
            writes.put(key, bytes: Array(new.utf8))
            try writes.apply(to: transaction)
            return new
        }.outcome
        var apps = apps
        apps.apps[Delivery.defaultApp, default: PushApp()].webpush = try WebPushCredentials(key: text, subject: subject)
        return apps
    }
}

import HatoModel
import HatoRPC
import HatoStorage

/// `auth.backup`.
struct BackupMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Backup.self, in: &router) { methods, request, _ in try await methods.backup(request.name) }
    }

    /// Runs on a reader thread of the store, since its duration grows with the number of accounts.
    private func backup(_ name: BackupName) async throws -> BackupResult {
        guard let folder = configuration.backupFolder else { throw RPCError.backupsOff }
        do {
            guard let version = try await store.read({ [store] _ in try folder.write(name.text, of: store) }) else {
                throw RPCError.backupExists(name)
            }
            return BackupResult(name: name, version: version)
        } catch StoreError.locked {
            throw RPCError.backupRunning
        } catch StoreError.io(let why) {
            throw RPCError.backupFailed(why)
        } catch StoreError.corrupted(let why) {
            throw RPCError.storeDamaged(why)
        }
    }
}

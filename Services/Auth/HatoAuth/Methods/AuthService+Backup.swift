import HatoModel
import HatoRPC
import HatoStorage

extension AuthService {
    func addBackupMethod(to router: inout RPCRouter) {
        handle(Auth.Backup.self, in: &router) { service, request, _ in try await service.backup(request.name) }
    }

    /// On a reader thread of the store: it takes as long as there are accounts.
    private func backup(_ name: BackupName) async throws -> BackupResult {
        guard let folder = configuration.backupFolder else { throw RPCError.backupsOff }
        do {
            guard let version = try await store.read({ [store] _ in try folder.write(name.text, of: store) }) else {
                throw RPCError.backupExists(name)
            }
            return BackupResult(name: name, version: version)
        } catch StoreError.io(let why) {
            throw RPCError.backupFailed(why)
        } catch StoreError.corrupted(let why) {
            throw RPCError.storeDamaged(why)
        }
    }
}

import HatoRPC
import HatoStorage
import Logging

/// Keeps the counts of wrong passwords in the store, so that no restart of the service lets others guess anew: a
/// second's changes together, after their responses. What the last second before a crash brought is lost.
struct FailureKeeper: Sendable {
    /// Of one transaction.
    private static let changesMax = 1_000

    private let service: AuthService

    init(_ service: AuthService) { self.service = service }

    /// Takes the counts of the store over, and deletes those that count no longer. Throws the errors of the store.
    func load() async throws {
        let all = try await service.store.read { try FailureRows.all(in: $0) }
        let over = service.attempts.restore(all)
        for start in stride(from: 0, to: over.count, by: Self.changesMax) {
            let page = over[start..<min(start + Self.changesMax, over.count)]
            _ = try await service.store.write { rows in
                for key in page { FailureRows.put(nil, key, in: rows) }
            }
        }
    }

    /// Writes what has changed each second, until the task is cancelled, and the rest then.
    func run() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(1))
            await write()
        }
        await write()
    }

    func write() async {
        while true {
            let changes = service.attempts.takeChanges(countMax: Self.changesMax)
            guard !changes.isEmpty else { return }
            do {
                _ = try await service.store.write { rows in
                    for change in changes { FailureRows.put(change.count, change.key, in: rows) }
                }
            } catch {
                service.attempts.putBack(changes.map(\.key))
                service.environment.notices.notice(
                    .refusedByStore, "wrong passwords could not be counted in the store", ["error": "\(error)"],
                    level: .warning)
                return
            }
        }
    }
}

import HatoStorage
import Synchronization

/// Deletes rows from a store that no service uses.
enum RowRemoval {
    /// Deletes the rows of ranges in one commit, which is durable when this returns.
    static func remove(_ ranges: [KeyRange], from folder: String, _ options: RocksDBOptions) throws(StoreError) {
        guard !ranges.isEmpty else { return }
        let store = try RocksDBStore.open(folder: folder, options: options)
        let failure = Mutex<(any Error)?>(nil)
        store.submit { rows in
            for range in ranges { rows.deleteRange(range) }
        } completion: { result in
            if case .failure(let error) = result { failure.withLock { $0 = error } }
        }
        // Waits for the commit.
        store.close()
        guard let error = failure.withLock({ $0 }) else { return }
        throw error as? StoreError ?? .io("\(error)")
    }
}

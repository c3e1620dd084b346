import HatoPush

/// Records the results of attempts: those that end while a transaction is written have the next one together.
actor ResultWriter {
    private let outbox: Outbox
    private var waiting: [(ended: EndedAttempt, recorded: CheckedContinuation<Void, any Error>)] = []
    private var isWriting = false
    /// Results of one transaction.
    private static let batchMax = 512

    init(_ outbox: Outbox) { self.outbox = outbox }

    /// Returns when it is durable. Throws the errors of the store.
    func record(_ outcome: DeliveryOutcome, of lease: Lease) async throws {
        try await withCheckedThrowingContinuation { recorded in
            waiting.append((EndedAttempt(outcome: outcome, lease: lease), recorded))
            guard !isWriting else { return }
            isWriting = true
            // Unstructured: an attempt does not write the results of others. It ends with the last one.
            Task { await write() }
        }
    }

    private func write() async {
        while !waiting.isEmpty {
            let batch = waiting.prefix(Self.batchMax)
            waiting.removeFirst(batch.count)
            let result: Result<Void, any Error>
            do { result = .success(try await outbox.record(batch.map(\.ended))) } catch { result = .failure(error) }
            for entry in batch { entry.recorded.resume(with: result) }
        }
        isWriting = false
    }
}

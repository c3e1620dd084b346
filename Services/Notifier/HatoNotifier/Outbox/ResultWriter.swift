import HatoPush

/// Records the results of attempts: those that end while a transaction is written have the next one together.
actor ResultWriter {
    private let outbox: Outbox
    private var waiting: [(ended: EndedAttempt, recorded: CheckedContinuation<Void, any Error>)] = []
    private var isWriting = false
    /// Devices that are gone, whose deliveries are dropped one device after the other; no result waits for that.
    private var gone: [String] = []
    private var isDropping = false
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
            do {
                drop(try await outbox.record(batch.map(\.ended)))
                for entry in batch { entry.recorded.resume() }
            } catch {
                // What one of them cannot do must not repeat the attempts of the others.
                for entry in batch {
                    do {
                        if batch.count == 1 { throw error }
                        drop(try await outbox.record([entry.ended]))
                        entry.recorded.resume()
                    } catch { entry.recorded.resume(throwing: error) }
                }
            }
        }
        isWriting = false
    }

    private func drop(_ devices: [String]) {
        gone += devices
        guard !gone.isEmpty, !isDropping else { return }
        isDropping = true
        // Unstructured: it ends with the last device.
        Task { await dropAll() }
    }

    private func dropAll() async {
        // A failure loses nothing: deliveries of a device that is gone are dropped when they are due, too.
        while let device = gone.popLast() { try? await outbox.dropDeliveries(of: device) }
        isDropping = false
    }
}

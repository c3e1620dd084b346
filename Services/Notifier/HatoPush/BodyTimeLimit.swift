import Synchronization

/// How long reading the body of a response may take. One timer watches all that are read, where one for each costs more
/// than the reading.
final class BodyTimeLimit: Sendable {
    private enum Reading {
        /// The caller does not wait yet.
        case begun
        case watched(CheckedContinuation<Void, Never>)

        func resume() {
            if case .watched(let caller) = self { caller.resume() }
        }
    }

    private struct State {
        var number = 0
        /// Those that began since the timer fired last, by number, until they end.
        var newer: [Int: Reading] = [:]
        /// Those before.
        var older: [Int: Reading] = [:]
        var hasTimer = false

        mutating func remove(_ number: Int) -> Reading? {
            newer.removeValue(forKey: number) ?? older.removeValue(forKey: number)
        }

        /// Returns whether it has not ended.
        mutating func watch(_ number: Int, _ continuation: CheckedContinuation<Void, Never>) -> Bool {
            if newer[number] != nil {
                newer[number] = .watched(continuation)
            } else if older[number] != nil {
                older[number] = .watched(continuation)
            } else {
                return false
            }
            return true
        }
    }

    /// At most; at least half of it.
    let limit: Duration
    private let state = Mutex(State())

    init(_ limit: Duration) { self.limit = limit }

    /// Returns what `read` returns, which is cancelled when it takes too long.
    func bytes(_ read: @escaping @Sendable () async -> [UInt8]) async -> [UInt8] {
        let number = begin()
        return await withTaskGroup { group in
            group.addTask {
                defer { self.end(number) }
                return await read()
            }
            await isEnded(number)
            group.cancelAll()
            return await group.next() ?? []
        }
    }

    private func begin() -> Int {
        let (number, isFirst) = state.withLock { state in
            state.number &+= 1
            state.newer[state.number] = .begun
            defer { state.hasTimer = true }
            return (state.number, !state.hasTimer)
        }
        // Unstructured: it ends when nothing is read.
        if isFirst { Task { await endLate() } }
        return number
    }

    /// Returns when the reading has ended, has taken too long, or the task is cancelled.
    private func isEnded(_ number: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if !state.withLock({ $0.watch(number, continuation) }) { continuation.resume() }
            }
        } onCancel: {
            end(number)
        }
    }

    private func end(_ number: Int) { state.withLock { $0.remove(number) }?.resume() }

    private func endLate() async {
        var isDone = false
        while !isDone {
            try? await Task.sleep(for: limit / 2)
            let late = state.withLock { state in
                let late = Array(state.older.values)
                (state.older, state.newer) = (state.newer, [:])
                isDone = state.older.isEmpty
                state.hasTimer = !isDone
                return late
            }
            for reading in late { reading.resume() }
        }
    }
}

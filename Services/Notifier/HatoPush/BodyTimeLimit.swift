import Synchronization

/// How long reading the body of a response may take. One timer watches all that are read, where one for each costs more
/// than the reading.
final class BodyTimeLimit: Sendable {
    private struct Reading {
        /// Its time is over then.
        var end: ContinuousClock.Instant
        /// Nil: the caller does not wait yet.
        var caller: CheckedContinuation<Void, Never>?
    }

    private struct State {
        var number = 0
        /// Those that have not ended, by number.
        var readings: [Int: Reading] = [:]
        var hasTimer = false
    }

    /// How often the timer looks within the limit.
    private static let looks = 8

    /// At most; at least seven eighths of it.
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
        let end = ContinuousClock.now + limit * (Self.looks - 1) / Self.looks
        let (number, isFirst) = state.withLock { state in
            state.number &+= 1
            state.readings[state.number] = Reading(end: end)
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
                let isEnded = state.withLock { state in
                    guard !Task.isCancelled, state.readings[number] != nil else { return true }
                    state.readings[number]?.caller = continuation
                    return false
                }
                if isEnded { continuation.resume() }
            }
        } onCancel: {
            end(number)
        }
    }

    private func end(_ number: Int) {
        let reading = state.withLock { $0.readings.removeValue(forKey: number) }
        reading?.caller?.resume()
    }

    private func endLate() async {
        var isDone = false
        while !isDone {
            try? await Task.sleep(for: limit / Self.looks)
            let now = ContinuousClock.now
            let late = state.withLock { state in
                let late = state.readings.filter { $0.value.end <= now }
                for number in late.keys { state.readings[number] = nil }
                isDone = state.readings.isEmpty
                state.hasTimer = !isDone
                return late
            }
            for reading in late.values { reading.caller?.resume() }
        }
    }
}

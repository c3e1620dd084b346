import Foundation
import HatoStorage
import Testing

@testable import HatoMessages

/// Random histories without sockets and clocks: the first event of a listener and all later ones make the value of the
/// tree, or of the query, at the version of every notification; no listener gets values without read access; own events
/// come before own responses.
///
/// Every run has the same histories, so that a change that breaks one is known by it; `HATO_HISTORIES=10000` runs so
/// many others, and `HATO_SEED=n HATO_HISTORIES=1` repeats one and prints its trace.
@Suite struct ListenerHistoryTests {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap(UInt64.init)
    }

    @Test func everyListenerSeesTheTreeAtEveryVersion() async throws {
        let wanted = Self.number("HATO_HISTORIES")
        let first = Self.number("HATO_SEED") ?? (wanted == nil ? 1 : UInt64.random(in: 0...UInt64.max / 2))
        let count = wanted ?? 300
        // Not on a thread of the pool: each commit is waited for.
        let failure: String? = try await withCheckedThrowingContinuation { continuation in
            do {
                try startThread { continuation.resume(returning: Self.failure(in: first..<(first + count))) }
            } catch { continuation.resume(throwing: error) }
        }
        #expect(failure == nil)
    }

    /// The first history that goes wrong.
    private static func failure(in seeds: Range<UInt64>) -> String? {
        for seed in seeds {
            do {
                let world = try HistoryWorld(seed: seed, tellsStory: seeds.count == 1)
                do { try world.run(steps: 160) } catch {
                    return (world.story + ["HATO_SEED=\(seed) HATO_HISTORIES=1: \(error)"]).joined(separator: "\n")
                }
            } catch { return "\(error)" }
        }
        return nil
    }
}

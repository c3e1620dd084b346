import Foundation
import HatoTesting

/// How hard the fault tests try. The full run of a release is `HATO_FAULT_PUSHES=5000 HATO_FAULT_KILLS=5`; what `make
/// test` does takes some seconds. `HATO_FAULT_SEED` repeats a run's moments and values.
enum FaultSettings {
    static let pushes = number("HATO_FAULT_PUSHES") ?? 300
    static let kills = number("HATO_FAULT_KILLS") ?? 1
    static let seed = number("HATO_FAULT_SEED") ?? Int.random(in: 1...1_000_000)

    /// How long one test may wait for one thing. Longer than any machine needs; only a test that fails gets there.
    static let patience: Duration = .seconds(120)

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init)
    }
}

/// Asks again and again until there is an answer.
func waiting<Answer>(
    for thing: @autoclosure () -> String, _ ask: () async throws -> Answer?
) async throws -> Answer {
    var answer: Answer?
    try await eventually(thing(), within: FaultSettings.patience) {
        answer = try await ask()
        return answer != nil
    }
    guard let answer else { throw NeverHappened(thing()) }
    return answer
}

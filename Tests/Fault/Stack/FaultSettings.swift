import Foundation

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

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: Int) { state = UInt64(truncatingIfNeeded: seed) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// What was waited for in vain.
struct NeverHappened: Error, CustomStringConvertible {
    var description: String
}

/// Asks again and again until there is an answer.
func waiting<Answer>(
    for thing: @autoclosure () -> String, _ ask: () async throws -> Answer?
) async throws -> Answer {
    let deadline = ContinuousClock.now + FaultSettings.patience
    while true {
        if let answer = try await ask() { return answer }
        if ContinuousClock.now > deadline { throw NeverHappened(description: thing()) }
        try await Task.sleep(for: .milliseconds(20))
    }
}

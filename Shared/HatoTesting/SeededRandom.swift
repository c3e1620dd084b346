import Foundation

/// Random numbers that a seed repeats (SplitMix64): print the seed when a test fails.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension SeededRandom {
    /// The seed of a random test, which is printed. Each run has the same seed, so a failure is caused by a change of
    /// the code. `HATO_SEED=random` takes another seed, and `HATO_SEED=n` repeats one.
    package static func seed(of test: String = #function) -> UInt64 {
        let wanted = ProcessInfo.processInfo.environment["HATO_SEED"] ?? ""
        let seed = wanted == "random" ? UInt64.random(in: 0...UInt64.max) : UInt64(wanted) ?? 1
        print("\(test): HATO_SEED=\(seed)")
        return seed
    }
}

import Foundation

/// The inputs of a fuzzing test of this folder, each made from a seed of its own. `HATO_FUZZ=n` tries n inputs;
/// `HATO_SEED=n HATO_FUZZ=1` repeats the input with the seed n.
enum RESTFuzzInputs {
    /// Calls `body` for each input and returns the failures it found, with their seeds, at most ten.
    static func failures(
        _ usual: Int, of test: String = #function, _ body: (inout RESTRandom) throws -> String?
    ) -> [String] {
        let environment = ProcessInfo.processInfo.environment
        let count = Int(environment["HATO_FUZZ"] ?? "") ?? usual
        let wanted = environment["HATO_SEED"] ?? ""
        let first = wanted == "random" ? UInt64.random(in: 0...UInt64.max) : UInt64(wanted) ?? 1
        var failures: [String] = []
        for number in 0..<max(count, 1) where failures.count < 10 {
            let seed = first &+ UInt64(number)
            var random = RESTRandom(seed: seed)
            do {
                if let failure = try body(&random) { failures.append("HATO_SEED=\(seed) HATO_FUZZ=1: \(failure)") }
            } catch {
                failures.append("HATO_SEED=\(seed) HATO_FUZZ=1: threw \(error)")
            }
        }
        print("\(test): \(count) inputs from the seed \(first)")
        return failures
    }
}

/// Random numbers that a seed repeats (SplitMix64).
struct RESTRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `bound`.
    mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: (next() >> 32) % UInt64(bound))
    }

    /// True once in so many times.
    mutating func once(in count: Int) -> Bool { below(count) == 0 }

    /// One of the elements, of which there is at least one.
    mutating func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Damages a text: changes, removes, repeats and inserts bytes.
    mutating func mutate(_ bytes: inout [UInt8], inserting tokens: [[UInt8]]) {
        for _ in 0..<1 + below(3) {
            let place = below(bytes.count + 1)
            switch below(6) {
            case 0 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 1 where place < bytes.count: bytes.remove(at: place)
            case 2: bytes.removeSubrange(min(bytes.count, place + below(20))...)
            case 3 where place < bytes.count:
                let piece = Array(bytes[place..<min(bytes.count, place + 1 + below(12))])
                bytes.insert(contentsOf: piece, at: below(bytes.count + 1))
            default: bytes.insert(contentsOf: one(of: tokens), at: place)
            }
        }
    }
}

import Foundation

/// Random numbers that a seed repeats (SplitMix64).
struct SeededInputs: RandomNumberGenerator {
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
    mutating func below(_ bound: Int) -> Int { bound <= 1 ? 0 : Int(truncatingIfNeeded: (next() >> 32)) % bound }

    /// True once in so many times.
    mutating func once(in count: Int) -> Bool { below(count) == 0 }

    /// One of the elements, of which there is at least one.
    mutating func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Damages a text: changes, removes, repeats and inserts bytes, and `tokens`.
    mutating func damage(_ bytes: inout [UInt8], inserting tokens: [String] = Self.tokens) {
        for _ in 0..<1 + below(4) {
            let place = below(bytes.count + 1)
            switch below(6) {
            case 0 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 1 where place < bytes.count: bytes.removeSubrange(place..<min(bytes.count, place + 1 + below(5)))
            case 2: bytes.removeSubrange(min(bytes.count, place + below(30))...)
            case 3 where place < bytes.count:
                let piece = Array(bytes[place..<min(bytes.count, place + 1 + below(12))])
                bytes.insert(contentsOf: piece, at: below(bytes.count + 1))
            default: bytes.insert(contentsOf: Array(one(of: tokens).utf8), at: place)
            }
        }
    }

    static let tokens = [
        "{", "}", "[", "]", "\"", "\\", ",", ":", "null", "\n", "\r", "\\ud800", "1e999", "\"r\":7", "\u{2028}", "0",
    ]

    /// How many inputs a test takes that usually takes so many: as many as `HATO_FUZZ` says.
    static func count(_ usual: Int) -> Int {
        max(Int(ProcessInfo.processInfo.environment["HATO_FUZZ"] ?? "") ?? usual, 1)
    }

    /// Runs `body` with so many seeds, or as many as `HATO_FUZZ` says, from `HATO_SEED` on. Returns the failures with
    /// the seeds that repeat them, at most ten.
    static func failures(
        _ usual: Int, of test: String = #function, _ body: (inout SeededInputs) throws -> String?
    ) -> [String] {
        let count = count(usual)
        let wanted = ProcessInfo.processInfo.environment["HATO_SEED"] ?? ""
        let first = wanted == "random" ? UInt64.random(in: 0...UInt64.max) : UInt64(wanted) ?? 1
        var failures: [String] = []
        for number in 0..<count where failures.count < 10 {
            let seed = first &+ UInt64(number)
            var inputs = SeededInputs(seed: seed)
            do {
                if let failure = try body(&inputs) { failures.append("HATO_SEED=\(seed) HATO_FUZZ=1: \(failure)") }
            } catch {
                failures.append("HATO_SEED=\(seed) HATO_FUZZ=1: threw \(error)")
            }
        }
        print("\(test): \(count) inputs from the seed \(first)")
        return failures
    }
}

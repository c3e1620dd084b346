import Foundation

/// The inputs of a fuzzing test. Each input is made from a seed of its own, which is printed when a check fails.
///
/// `HATO_FUZZ=n` tries n inputs; the default is a number that fits into every run. `HATO_SEED=n HATO_FUZZ=1` repeats
/// the input with the seed n.
package enum FuzzInputs {
    /// Calls `body` for each input and returns the failures it found, with their seeds, at most ten.
    ///
    /// - Parameter usual: the number of inputs, unless the environment sets another one.
    package static func failures(
        _ usual: Int, of test: String = #function, _ body: (inout SeededRandom) throws -> String?
    ) -> [String] {
        let count = Int(ProcessInfo.processInfo.environment["HATO_FUZZ"] ?? "") ?? usual
        let first = SeededRandom.seed(of: test)
        var failures: [String] = []
        for number in 0..<max(count, 1) where failures.count < 10 {
            let seed = first &+ UInt64(number)
            var random = SeededRandom(seed: seed)
            do {
                if let failure = try body(&random) { failures.append("HATO_SEED=\(seed) HATO_FUZZ=1: \(failure)") }
            } catch {
                failures.append("HATO_SEED=\(seed) HATO_FUZZ=1: threw \(error)")
            }
        }
        print("\(test): \(count) inputs")
        return failures
    }
}

extension SeededRandom {
    /// A number from 0 to below `bound`.
    package mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: (next() >> 32) % UInt64(bound))
    }

    /// True once in so many times.
    package mutating func once(in count: Int) -> Bool { below(count) == 0 }

    /// One of the elements, of which there is at least one.
    package mutating func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Damages a text: changes, removes, repeats and inserts bytes.
    package mutating func mutate(_ bytes: inout [UInt8], inserting tokens: [[UInt8]]) {
        for _ in 0..<1 + below(4) {
            let place = below(bytes.count + 1)
            switch below(7) {
            case 0 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 1 where place < bytes.count: bytes[place] ^= 1 << UInt8(below(8))
            case 2 where place < bytes.count: bytes.removeSubrange(place..<min(bytes.count, place + 1 + below(3)))
            case 3: bytes.removeSubrange(min(bytes.count, place + below(20))...)
            case 4 where place < bytes.count:
                let piece = Array(bytes[place..<min(bytes.count, place + 1 + below(12))])
                bytes.insert(contentsOf: piece, at: below(bytes.count + 1))
            case 5: bytes.insert(UInt8(truncatingIfNeeded: next()), at: place)
            default: bytes.insert(contentsOf: one(of: tokens), at: place)
            }
        }
    }
}

import Foundation

/// A run over random inputs: their number, their seed, and the findings.
///
/// `make test` takes a small number. `HATO_FUZZ=1000000` takes that many inputs of each kind and `HATO_SEED=n` another
/// seed: `HATO_FUZZ=1000000 nice swift test --skip-build --filter HatoRulesTests.FuzzTests`. Each input depends only on
/// the seed and its round, so that `findings(of:)` repeats a single round.
struct FuzzRun {
    let seed: UInt64
    let rounds: Range<Int>
    private(set) var findings: [String] = []
    /// How often each kind of result occurred: a run in which everything is refused shows nothing.
    private(set) var counts: [String: Int] = [:]

    /// - Parameter usual: the number of inputs without `HATO_FUZZ`.
    init(usual: Int) {
        let environment = ProcessInfo.processInfo.environment
        self.init(
            seed: environment["HATO_SEED"].flatMap { UInt64($0) } ?? 1,
            rounds: 0..<(environment["HATO_FUZZ"].flatMap { Int($0) } ?? usual))
    }

    init(seed: UInt64, rounds: Range<Int>) {
        self.seed = seed
        self.rounds = rounds
    }

    /// Calls `check` with a generator for each round; a returned text is a finding.
    mutating func run(_ check: (_ random: inout SplitMix, _ count: (String) -> Void) -> String?) {
        for round in rounds {
            var random = SplitMix(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(round) &* 0xD134_2543_DE82_EF95)
            var counted: [String] = []
            if let finding = check(&random, { counted.append($0) }), findings.count < 20 {
                findings.append("seed \(seed), round \(round): \(finding)")
            }
            for name in counted { counts[name, default: 0] += 1 }
        }
    }
}

/// Turns a valid text into an invalid one.
enum FuzzMutation {
    /// The text with some scalars removed, doubled, moved, or replaced by pieces of the language.
    static func mutated(_ text: String, _ pieces: [String], _ random: inout SplitMix) -> String {
        var scalars = Array(text.unicodeScalars)
        for _ in 0..<Int(1 + random.next() % 3) {
            let start = scalars.isEmpty ? 0 : Int(random.next() % UInt64(scalars.count))
            let end = min(scalars.count, start + Int(random.next() % 5))
            switch random.next() % 5 {
            case 0: scalars.removeSubrange(start..<end)
            case 1: scalars.insert(contentsOf: scalars[start..<end], at: start)
            case 2:
                let moved = scalars[start..<end]
                scalars.removeSubrange(start..<end)
                scalars.insert(contentsOf: moved, at: Int(random.next() % UInt64(scalars.count + 1)))
            case 3: scalars.replaceSubrange(start..<end, with: random.pick(pieces).unicodeScalars)
            default: scalars.insert(contentsOf: random.pick(pieces).unicodeScalars, at: start)
            }
        }
        var mutated = String.UnicodeScalarView()
        mutated.append(contentsOf: scalars)
        return String(mutated)
    }

    static func noise(_ random: inout SplitMix) -> String {
        let bytes = (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        return String(decoding: bytes, as: UTF8.self)
    }
}

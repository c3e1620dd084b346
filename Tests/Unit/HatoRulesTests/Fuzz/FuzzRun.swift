import Foundation

/// A run over random inputs: how many, from which seed, and what was found.
///
/// `make test` takes a small part. `HATO_FUZZ=1000000` takes so many inputs of each kind and `HATO_SEED=n` another
/// seed: `HATO_FUZZ=1000000 nice swift test --skip-build --filter HatoRulesTests.FuzzTests`. Each input depends on
/// the seed and its round only, so that `findings(of:)` of that round alone shows it again.
struct FuzzRun {
    let seed: UInt64
    let rounds: Range<Int>
    private(set) var findings: [String] = []
    /// How often each thing happened: a run in which everything is refused shows nothing.
    private(set) var counts: [String: Int] = [:]

    /// - Parameter usual: how many inputs without `HATO_FUZZ`.
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

    /// Gives `check` a generator for each round; what it returns is wrong.
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

/// What makes a wrong text of a right one.
enum FuzzMutation {
    /// Some scalars taken away, doubled, moved, or replaced by pieces of the language.
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

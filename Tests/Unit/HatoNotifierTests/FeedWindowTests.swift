import HatoModel
import HatoTesting
import Testing

@testable import HatoNotifier

/// The order in which triggers go through the changes of a feed.
@Suite struct FeedWindowTests {
    private static let patterns = ["/a/{x}", "/b/{x}"]

    private func triggers(_ patterns: [String]) throws -> [FeedTrigger] {
        try patterns.enumerated().map { index, pattern in
            let trigger = Notifier.Triggers.Set(
                id: "t\(index)", pattern: try FeedPattern(pattern), recipients: .init(uids: ["u"]),
                notification: .init(title: "new", body: nil)
            ).trigger
            return FeedTrigger(
                compiled: try CompiledTrigger(trigger, limits: NotifierLimits()),
                record: TriggerRecord(trigger: trigger, startsAfter: 0, epoch: "e"))
        }
    }

    private func commit(_ version: UInt64, _ patterns: [String]) -> BufferedCommit {
        let changes = patterns.enumerated().map { index, pattern in
            FeedChange(
                pattern: pattern, parameters: ["x": "\(version)"], path: "/\(version)/\(index)", type: .created,
                before: .null, after: true, uid: nil)
        }
        return BufferedCommit(
            commit: FeedCommit(version: version, epoch: "e", time: 0, changes: changes), reservation: nil)
    }

    /// Whatever the transactions take: each trigger fires once for each change of its pattern, part by part, in the
    /// order of the changes, and a commit is done when all its triggers are.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func everyTriggerSeesEveryChangeOnceAndInOrder(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let held = try triggers(["/a/{x}", "/b/{x}", "/a/{x}", "/b/{x}"].prefix(Int(seed % 4) + 1).map { $0 })
        var window = FeedWindow(held)
        var (left, through): ([[String]], [String: String]) = (held.map { _ in [] }, [:])
        var (version, done): (UInt64, UInt64) = (0, 0)
        for round in 0..<400 {
            if round < 200 {
                for _ in 0..<Int.random(in: 0...4, using: &random) {
                    version += 1
                    let changes = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                        Self.patterns[Int.random(in: 0...1, using: &random)]
                    }
                    window.append(commit(version, changes), isHandled: false, at: 0)
                    for (place, pattern) in changes.enumerated() {
                        for (index, trigger) in held.enumerated()
                        where trigger.compiled.pattern.description == pattern {
                            left[index].append("/\(version)/\(place)")
                        }
                    }
                }
            }
            // One transaction.
            var firings = round < 200 ? Int.random(in: 1...6, using: &random) : 50
            while firings > 0 {
                guard let firing = window.nextFiring() else {
                    if window.beginPass() { continue }
                    break
                }
                firings -= 1
                let name = "\(firing.index) \(firing.change.path)"
                try #require(left[firing.index].first == firing.change.path, "seed \(seed), round \(round)")
                #expect(firing.through == through[name], "seed \(seed), round \(round)")
                let isLast = Int.random(in: 0..<3, using: &random) > 0
                if isLast { left[firing.index].removeFirst() }
                through[name] = isLast ? nil : "u\(round)"
                window.spent(
                    Int.random(in: 0...10, using: &random), on: firing, through: through[name], max: 15)
            }
            if let commit = window.dropDone().through { done = commit.version }
            let first = left.compactMap(\.first).compactMap { $0.split(separator: "/").first.flatMap { UInt64($0) } }
            #expect(done < first.min() ?? .max, "seed \(seed), round \(round)")
        }
        #expect(left.allSatisfy(\.isEmpty) && window.isEmpty && done == version, "seed \(seed)")
    }
}

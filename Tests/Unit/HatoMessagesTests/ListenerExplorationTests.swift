import Testing

@testable import HatoMessages

/// All sequences of events up to a depth: a client is never sent a gap, anything twice, anything it may not read, or
/// anything after the end, and its own events come before its own answers.
@Suite struct ListenerExplorationTests {
    private static let depth = 5
    private static let newestMax: UInt64 = 5

    static let settings: [ExploredListening.Setting] = [
        .init(), .init(since: true), .init(etag: "same"), .init(since: true, etag: "other", hasCompany: true),
        .init(gathers: true), .init(since: true, gathers: true), .init(hasCompany: true, shares: true),
        .init(judgesAtOnce: true, hasCompany: true), .init(etag: "same", judgesAtOnce: true, shares: true),
        .init(gathers: true, judgesAtOnce: true, shares: true),
    ]

    @Test(arguments: settings)
    func everySequenceOfEventsIsWhatAClientMustSee(setting: ExploredListening.Setting) throws {
        var seen: Set<ExploredListening> = []
        var last: [(world: ExploredListening, steps: [ExploredListening.Step])] = [
            (try ExploredListening(setting), [])
        ]
        for _ in 0..<Self.depth {
            var next: [(world: ExploredListening, steps: [ExploredListening.Step])] = []
            for (world, steps) in last {
                for step in world.steps(newestMax: Self.newestMax) {
                    var after = world
                    do {
                        try after.take(step)
                        guard seen.insert(after).inserted else { continue }
                        try after.checkEnd()
                    } catch {
                        Issue.record("\(error): \(steps + [step])")
                        return
                    }
                    next.append((after, steps + [step]))
                }
            }
            last = next
        }
        print("worlds", setting, seen.count)
    }
}

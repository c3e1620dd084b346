import Foundation
import Testing

@testable import HatoMessages

/// All sequences of events up to a depth: a client is never sent a gap, anything twice, anything it may not read, or
/// anything after the end, and its own events come before its own responses. `HATO_DEPTH=9` goes further.
@Suite struct ListenerExplorationTests {
    private static let depth = ProcessInfo.processInfo.environment["HATO_DEPTH"].flatMap { Int($0) } ?? 7
    private static let newestMax: UInt64 = 5

    static let settings: [ExploredListening.Setting] = [
        .init(hasCompany: true), .init(since: true), .init(etag: "same", authorisesAtOnce: true),
        .init(since: true, etag: "other", hasCompany: true, shares: true), .init(since: true, gathers: true),
        .init(isOpen: true), .init(hasCompany: true, shares: true, isOpen: true),
        .init(authorisesAtOnce: true, hasCompany: true, isOpen: true), .init(gathers: true, isOpen: true),
        .init(gathers: true, authorisesAtOnce: true, shares: true, isOpen: true),
        .init(hasCompany: true, queues: true, isOpen: true), .init(gathers: true, queues: true, isOpen: true),
        .init(since: true, hasCompany: true, queues: true), .init(hasCompany: true, isBusy: true),
        .init(since: true, hasCompany: true, isBusy: true),
        .init(etag: "other", authorisesAtOnce: true, hasCompany: true, isBusy: true),
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
                for step in world.steps(newestMax: Self.newestMax + (setting.isBusy ? 1 : 0)) {
                    var after = world
                    do {
                        try after.take(step)
                        guard seen.insert(after).inserted else { continue }
                        try after.checkEnd()
                    } catch {
                        // The shortest sequence that goes wrong.
                        Issue.record("\(error): \(steps + [step])")
                        return
                    }
                    if !after.hasEnded { next.append((after, steps + [step])) }
                }
            }
            last = next
        }
        #expect(seen.count > 1_000)
    }
}

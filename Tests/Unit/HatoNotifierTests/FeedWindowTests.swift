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

    /// The changes of one commit, as they were read from their rows.
    private func changes(_ version: UInt64, _ patterns: [String]) -> [LoadedChange] {
        patterns.enumerated().map { index, pattern in
            let change = FeedChange(
                pattern: pattern, parameters: ["x": "\(version)"], path: "/\(version)/\(index)", type: .created,
                before: .null, after: true, uid: nil)
            return LoadedChange(
                row: ChangeRow(
                    .default, of: change.writer, at: ChangePosition(sequence: version, index: UInt32(index))),
                record: ChangeRecord(change: change, version: version, epoch: "e", time: 0))
        }
    }

    /// Whatever the transactions take: each trigger fires once for each change of its pattern, part by part, in the
    /// order of the changes or, where it is said so, ahead of it; and a change is done when all its triggers are.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func everyTriggerSeesEveryChangeOnceAndInOrder(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let held = try triggers(["/a/{x}", "/b/{x}", "/a/{x}", "/b/{x}"].prefix(Int(seed % 4) + 1).map { $0 })
        var window = FeedWindow(held)
        var (left, through): ([[String]], [String: String]) = (held.map { _ in [] }, [:])
        var (came, places): ([String], [String: Int]) = ([], [:])
        var (version, done): (UInt64, [String]) = (0, [])
        for round in 0..<400 {
            if round < 200 {
                for _ in 0..<Int.random(in: 0...4, using: &random) {
                    version += 1
                    let changes = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                        Self.patterns[Int.random(in: 0...1, using: &random)]
                    }
                    for change in self.changes(version, changes) { window.append(change) }
                    for (place, pattern) in changes.enumerated() {
                        places["/\(version)/\(place)"] = came.count
                        came.append("/\(version)/\(place)")
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
                    let areThere = round >= 200 || Bool.random(using: &random)
                    if window.beginPass({ _ in areThere }) { continue }
                    break
                }
                firings -= 1
                if firing.isAhead {
                    let place = try #require(left[firing.index].firstIndex(of: firing.change.path))
                    #expect(place > 0 && firing.through == nil, "seed \(seed), round \(round)")
                    let step = Int.random(in: 0..<3, using: &random)
                    if step > 0 { left[firing.index].remove(at: place) }
                    switch step {
                    case 0: window.passOver(firing, .init(), isLast: Bool.random(using: &random))
                    case 1: window.isDone(firing)
                    default: window.spent(Int.random(in: 0...10, using: &random), on: firing, through: nil, max: 15)
                    }
                    continue
                }
                if round < 200, Int.random(in: 0..<8, using: &random) == 0 {
                    window.wait(for: .node(try TreePath(firing.change.path)), beside: [], firing)
                    continue
                }
                let name = "\(firing.index) \(firing.change.path)"
                try #require(left[firing.index].first == firing.change.path, "seed \(seed), round \(round)")
                #expect(firing.through == through[name], "seed \(seed), round \(round)")
                let isLast = Int.random(in: 0..<3, using: &random) > 0
                if isLast { left[firing.index].removeFirst() }
                through[name] = isLast ? nil : "u\(round)"
                window.spent(
                    Int.random(in: 0...10, using: &random), on: firing, through: through[name], max: 15)
            }
            done += window.dropDone().map(\.record.change.path)
            let first = left.compactMap { $0.first.flatMap { places[$0] } }.min()
            #expect(done.count <= first ?? .max, "seed \(seed), round \(round)")
        }
        #expect(left.allSatisfy(\.isEmpty) && window.isEmpty && done == came, "seed \(seed)")
    }

    /// The next firing of a pass; nil at its end.
    private struct Passes {
        var window: FeedWindow

        mutating func next() throws -> Firing {
            let firing = window.nextFiring()
            return try #require(firing)
        }

        /// Whether the pass ends, and another one begins.
        mutating func goesOn(_ isThere: Bool) -> Bool? {
            if window.nextFiring() != nil { return nil }
            return window.beginPass { _ in isThere }
        }

        mutating func append(_ changes: [LoadedChange]) { for change in changes { window.append(change) } }

        /// Through which commit all is done.
        mutating func done() -> UInt64? { window.dropDone().last?.record.version }
    }

    /// Where the handler lets them: those that it passes over come again.
    @Test func laterFiringsComeBesideOneOfWhichPartsAreToCome() throws {
        var passes = Passes(window: FeedWindow(try triggers(["/a/{x}"])))
        for version in UInt64(1)...3 { passes.append(changes(version, ["/a/{x}"])) }
        var content = TriggerSource.Content()
        content.recipients = .user("u")
        for part in ["p", "q"] {
            var first = try passes.next()
            #expect(first.change.path == "/1/0" && !first.isAhead)
            first.content = content
            passes.window.spent(1, on: first, through: part, max: 9)
            let second = try passes.next()
            #expect(second.change.path == "/2/0" && second.isAhead)
            #expect(second.content?.recipients == (part == "p" ? nil : .user("u")))
            passes.window.passOver(second, content, isLast: false)
            if part == "p" {
                let third = try passes.next()
                #expect(third.change.path == "/3/0" && third.isAhead)
                passes.window.spent(1, on: third, through: nil, max: 9)
            }
            let (goesOn, done) = (passes.goesOn(false), passes.done())
            #expect(goesOn == true && done == nil)
        }
        let last = try passes.next()
        #expect(last.through == "q" && last.content?.recipients == .user("u") && !last.isAhead)
        passes.window.spent(1, on: last, through: nil, max: 9)
        let second = try passes.next()
        #expect(second.change.path == "/2/0" && !second.isAhead)
        let (goesOn, done) = (passes.goesOn(true), passes.done())
        #expect(goesOn == false && done == 3 && passes.window.isEmpty)
    }

    @Test func aTriggerThatNeedsWhatIsNotThereHoldsUpNoOther() throws {
        var passes = Passes(window: FeedWindow(try triggers(Self.patterns)))
        for version in UInt64(1)...3 { passes.append(changes(version, Self.patterns)) }
        let need = FeedReadings.Need.recipients(try TreePath("/members"))
        let first = try passes.next()
        passes.window.wait(for: need, beside: [], first)
        for version in 1...3 {
            let path = try passes.next().change.path
            #expect(path == "/\(version)/1")
        }
        var (goesOn, done) = (passes.goesOn(false), passes.done())
        #expect(goesOn == false && done == nil && passes.window.needs == [need])
        #expect(passes.window.upcoming(9).map(\.change.path) == ["/1/0", "/2/0", "/3/0"])
        // What comes meanwhile is for the other.
        passes.append(changes(4, Self.patterns))
        var paths = [try passes.next().change.path]
        goesOn = passes.goesOn(true)
        // What it rested for stays needed until its firing comes, in whichever transaction that is.
        #expect(goesOn == true && passes.window.needs == [need])
        for _ in 1...4 { paths.append(try passes.next().change.path) }
        #expect(paths == ["/4/1", "/1/0", "/2/0", "/3/0", "/4/0"])
        (goesOn, done) = (passes.goesOn(true), passes.done())
        #expect(goesOn == false && done == 4 && passes.window.isEmpty && passes.window.needs.isEmpty)
    }
}

import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// The changes of a topic, kept once for listeners at all positions.
@Suite struct ChangedPathsTests {
    private func path(_ text: String) throws -> TreePath { try TreePath(text) }

    private static func change(_ path: TreePath) -> [PathChange] {
        let depth = path.depth
        return [PathChange(path: path, before: .empty, after: .leaf(.number(1)), depths: (depth, depth))]
    }

    /// What a listener lacks, kept for it alone.
    private static func expected(
        _ history: [(version: UInt64, path: TreePath)], after position: UInt64, since start: UInt64
    ) -> Set<TreePath>? {
        position < start ? nil : Set(history.filter { $0.version > position }.map(\.path))
    }

    @Test func everyPositionLacksWhatWasChangedAfterIt() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for round in 0..<60 {
            let start = UInt64.random(in: 0...20, using: &random)
            var changes = ChangedPaths(of: try path("/t"), after: start)
            var history: [(version: UInt64, path: TreePath)] = []
            var version = start
            for _ in 0..<Int.random(in: 1...400, using: &random) {
                version += UInt64.random(in: 1...3, using: &random)
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    let path = try TreePath("/t/k\(Int.random(in: 0..<random.pick([3, 90, 2_000]), using: &random))")
                    history.append((version, path))
                    changes.add(Self.change(path), at: version)
                }
            }
            for _ in 0..<50 {
                let position = UInt64.random(in: start...version, using: &random)
                let expected = Self.expected(history, after: position, since: start) ?? []
                switch changes.missing(after: position) {
                case .nothing: #expect(expected.isEmpty, "seed \(seed), round \(round)")
                case .paths(let first):
                    let paths = changes.paths(from: first)
                    #expect(
                        paths.changed.map { $0 == expected } ?? (expected.count > ChangedPaths.pathsMax),
                        "seed \(seed), round \(round)")
                case .everything: #expect(expected.count > ChangedPaths.pathsMax, "seed \(seed), round \(round)")
                }
            }
            #expect(changes.entryCount <= 2 * ChangedPaths.pathsMax)
        }
    }

    @Test func listenersThatLackTheSameHaveTheSameFirstVersion() throws {
        var changes = ChangedPaths(of: try path("/t"), after: 0)
        for version in 1...100 as ClosedRange<UInt64> { changes.add(Self.change(try path("/t/a")), at: version) }
        #expect(changes.missing(after: 3) == .paths(first: 100))
        #expect(changes.missing(after: 90) == .paths(first: 100))
        #expect(changes.missing(after: 100) == .nothing)
    }

    @Test func pathsAreLimitedInBytes() throws {
        var changes = ChangedPaths(of: try path("/t"), after: 0)
        let long = String(repeating: "k", count: 700)
        for version in 1...200 as ClosedRange<UInt64> {
            changes.add(Self.change(try TreePath("/t/\(long)\(version)")), at: version)
        }
        #expect(changes.byteCount <= ChangedPaths.bytesMax)
        #expect(changes.missing(after: 10) == .everything)
        #expect(changes.missing(after: 190) == .paths(first: 191))
    }

    @Test func updateOfMoreThanIsKeptCostsEachPathOnce() throws {
        var changes = ChangedPaths(of: try path("/t"), after: 0)
        let update = try (0..<10_000).flatMap { Self.change(try TreePath("/t/k\($0)")) }
        changes.add(update, at: 1)
        #expect(changes.missing(after: 0) == .everything)
        #expect(changes.missing(after: 1) == .nothing)
        #expect(changes.entryCount == 0)
    }

    @Test func earlierPartIsPrepended() throws {
        var changes = ChangedPaths(of: try path("/t"), after: 5)
        changes.add(Self.change(try path("/t/a")), at: 6)
        var earlier = ChangedPaths(of: try path("/t"), after: 1)
        for (place, version) in [("/t/a", 2), ("/t/b", 4), ("/t/a", 6)] as [(String, UInt64)] {
            earlier.add(Self.change(try path(place)), at: version)
        }
        changes.prepend(earlier, through: 6)
        #expect(changes.start == 1)
        #expect(changes.missing(after: 1) == .paths(first: 4))
        #expect(changes.paths(from: 4).changed == [try path("/t/a"), try path("/t/b")])
        #expect(changes.missing(after: 4) == .paths(first: 6))
        #expect(changes.missing(after: 6) == .nothing)
    }

    @Test func earlierPartWithAGapBehindItIsOfNoUse() throws {
        var changes = ChangedPaths(of: try path("/t"), after: 5)
        changes.prepend(ChangedPaths(of: try path("/t"), after: 1), through: 4)
        #expect(changes.start == 5)
        #expect(changes.missing(after: 2) == .everything)
    }

    @Test func changeAboveTheListenerAndEveryChangeOfAQueryAreEverything() throws {
        for (place, hasQuery) in [("/", false), ("/t", false), ("/t/a/b", true)] as [(String, Bool)] {
            var changes = ChangedPaths(of: try path("/t/a"), hasQuery: hasQuery, after: 5)
            changes.add(Self.change(try path(place)), at: 6)
            #expect(changes.missing(after: 5) == .everything)
            #expect(changes.missing(after: 6) == .nothing)
        }
    }
}

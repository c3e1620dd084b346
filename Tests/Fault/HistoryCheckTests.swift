import HatoModel
import Testing

/// `HistoryCheck` finds the faults it is made for. (Known issues in the log of these tests are invented faults.)
@Suite("The check of recorded histories")
struct HistoryCheckTests {
    private static let key = RandomLoad.path("k", "k0")
    private static let start = ContinuousClock.now

    /// An operation from `from` to `to`, in milliseconds.
    private static func operation(
        _ id: Int, _ request: RecordedOperation.Request, _ outcome: RecordedOperation.Outcome,
        _ from: Int, _ to: Int
    ) -> RecordedOperation {
        RecordedOperation(
            id: id, request: request, invoked: start + .milliseconds(from), answered: start + .milliseconds(to),
            outcome: outcome)
    }

    private static func set(
        _ id: Int, at version: UInt64?, expecting: JSONValue? = nil, _ from: Int, _ to: Int
    ) -> RecordedOperation {
        operation(
            id, .write([(key, .number(Double(id)))], expecting: expecting),
            version.map { .written(version: $0) } ?? .unknown, from, to)
    }

    private static func read(
        _ id: Int, _ value: JSONValue, at version: UInt64, _ from: Int, _ to: Int
    ) -> RecordedOperation {
        operation(id, .read(key), .read(value, version: version), from, to)
    }

    private static func commit(_ version: UInt64, _ id: Int) -> SeenCommit {
        SeenCommit(version: version, changes: [key: .number(Double(id))])
    }

    /// Two sets and a read between them, the first set on condition.
    private static let sound = [
        set(1, at: 2, expecting: .null, 0, 10), read(2, 1, at: 2, 20, 30), set(3, at: 3, 25, 40),
    ]
    private static let feed = [commit(2, 1), commit(3, 3)]

    private func check(
        _ operations: [RecordedOperation], _ feed: [SeenCommit], seen: [SeenCommit]? = nil, states: [SeenState] = []
    ) throws {
        let history = RecordedHistory()
        for operation in operations { history.add(operation) }
        for commit in seen ?? feed { history.add(commit) }
        for state in states { history.add(state) }
        _ = try HistoryCheck("made up", history, feed: feed).run()
    }

    @Test func aSoundHistoryPasses() throws {
        try check(Self.sound, Self.feed)
        // Without a response: done, or not.
        try check(Self.sound + [Self.set(4, at: nil, 50, 60)], Self.feed)
        try check(Self.sound + [Self.set(4, at: nil, 50, 60)], Self.feed + [Self.commit(4, 4)])
    }

    private func finds(_ body: () throws -> Void) { withKnownIssue("a fault that was made up") { try body() } }

    @Test func aLostWriteIsFound() { finds { try check(Self.sound, [Self.commit(2, 1)]) } }

    @Test func aDuplicateWriteIsFound() { finds { try check(Self.sound, Self.feed + [Self.commit(4, 3)]) } }

    @Test func aCommitWithoutAnOperationIsFound() { finds { try check(Self.sound, Self.feed + [Self.commit(4, 99)]) } }

    @Test func halfAWriteIsFound() {
        let both = [(RandomLoad.path("m", "a"), JSONValue.number(4)), (RandomLoad.path("m", "b"), JSONValue.number(4))]
        let update = Self.operation(4, .write(both.map { (path: $0.0, value: $0.1) }), .unknown, 50, 60)
        let half = SeenCommit(version: 4, changes: [both[0].0: both[0].1])
        finds { try check(Self.sound + [update], Self.feed + [half]) }
    }

    @Test func aReadOfAMissingValueIsFound() {
        finds { try check(Self.sound + [Self.read(4, 3, at: 2, 50, 60)], Self.feed) }
    }

    @Test func aReadThatComesTooLateIsFound() {
        finds { try check(Self.sound + [Self.read(4, 1, at: 2, 50, 60)], Self.feed) }
    }

    @Test func aWriteBeforeItsRequestIsFound() {
        finds { try check([Self.set(3, at: 3, 0, 10), Self.set(1, at: 2, 20, 30)], Self.feed) }
    }

    @Test func aConditionThatWasNotMetIsFound() {
        finds { try check([Self.set(1, at: 2, 0, 10), Self.set(3, at: 3, expecting: 7, 20, 30)], Self.feed) }
    }

    @Test func aRefusalForAValueThatWasGoneIsFound() {
        let refused = Self.operation(4, .write([(Self.key, .number(4))], expecting: 9), .mismatch(1), 50, 60)
        finds { try check(Self.sound + [refused], Self.feed) }
    }

    @Test func aCommitThatWasSeenAndIsGoneIsFound() {
        finds { try check(Self.sound, Self.feed, seen: Self.feed + [Self.commit(4, 9)]) }
        finds { try check(Self.sound, Self.feed, seen: [Self.commit(2, 1)]) }
    }

    @Test func aStateThatNeverWasIsFound() throws {
        let node = TreeNode.empty.setting(try TreeNode(json: 3), at: RandomLoad.path("k0"))
        finds { try check(Self.sound, Self.feed, states: [SeenState(version: 2, node: node)]) }
    }
}

import Dispatch
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoMessages

/// What readers get is of one commit: rows, rules and indexes are published as one value (architecture §4).
///
/// Each test stops the writer's thread where a group is published and none of its writes has ended, and reads there.
@Suite struct PublicationTests {
    @Test func aSecretIsReadByTheRulesThatCameWithIt() async throws {
        try await Self.readingInside(rules: DefaultRules.signedIn) {
            [
                #"{"method":"messages.rules.set","params":{"rules":"{\"rules\": {\".read\": false}}"}}"#,
                #"{"method":"messages.set","params":{"path":"/secret","value":"波平"}}"#,
            ]
        } then: { running in
            let reader = running.user("katsuo")
            let refused = await refusal { try await reader.call(Messages.Get(path: "/secret")) }
            #expect(refused?.code == .permissionDenied)
            await reader.close()
        }
    }

    @Test func aDroppedDatabaseIsGoneWithItsRows() async throws {
        try await Self.readingInside {
            [
                #"{"method":"messages.set","params":{"path":"/a","value":1}}"#,
                #"{"method":"messages.databases.drop","params":{"database":"default"}}"#,
            ]
        } then: { running in
            let reader = running.administrator
            let refused = await refusal { try await reader.call(Messages.Get(path: "/a")) }
            #expect(refused?.reason == "database_not_found")
            let left = try await reader.call(Messages.Databases.List())
            #expect(left.databases.isEmpty)
            await reader.close()
        }
    }

    @Test func aQueryFindsTheIndexesOfItsSnapshot() async throws {
        try await Self.readingInside(rules: #"{"rules": {"people": {".indexOn": "age"}}}"#) {
            [
                #"{"method":"messages.set","params":{"path":"/people/wakame","value":{"age":9}}}"#,
                #"{"method":"messages.rules.set","params":{"rules":"{\"rules\": {}}"}}"#,
            ]
        } then: { running in
            let reader = running.administrator
            let query = TreeQuery(order: .child("/age"))
            let refused = await refusal { try await reader.call(Messages.Get(path: "/people", query: query)) }
            #expect(refused?.reason == "index_not_defined")
            await reader.close()
        }
    }

    /// Has an administrator send two requests that become one group, and runs `body` when that is published and none of
    /// the two has ended.
    private static func readingInside(
        rules: String = DefaultRules.signedIn, requests: () -> [String],
        then body: (RunningMessages) async throws -> Void
    ) async throws {
        try await RunningMessages.with(rules: rules) { running in
            let lines = try await RawLines.connect(running)
            try await lines.send(
                #"{"jsonrpc":"2.0","id":0,"method":"session.authenticate","params":{"auth":"admin"}}"#)
            _ = try await lines.next()
            let publication = HeldPublication(of: running.store)
            let hold = try await WriterHold(running.store)
            let requests = requests().enumerated().map { #"{"jsonrpc":"2.0","id":\#($0 + 1),"# + $1.dropFirst() }
            try await lines.send(requests.joined(separator: "\n"))
            try await hold.release(after: 2)
            try await publication.reached()
            do { try await body(running) } catch {
                publication.release()
                throw error
            }
            publication.release()
            for _ in requests { #expect(try await lines.next()["error"] == nil) }
            lines.close()
        }
    }
}

/// Stops the thread that publishes the next group of several commits, when the store shows it and before anything else
/// happens. Groups that come later (a dropped database is emptied by writes of its own) are not stopped.
private final class HeldPublication: Sendable {
    private let isReached = Atomic<Bool>(false)
    private let gate = DispatchSemaphore(value: 0)

    init(of store: any Store) {
        store.observeCommits { [self] group in
            guard group.commits.count > 1, !isReached.exchange(true, ordering: .acquiringAndReleasing) else { return }
            _ = gate.wait(timeout: .now() + 240)
        }
    }

    func reached() async throws {
        try await eventually("a group is published") { isReached.load(ordering: .acquiring) }
    }

    func release() { gate.signal() }
}

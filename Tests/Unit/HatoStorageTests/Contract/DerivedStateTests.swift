import HatoStorage
import Testing

/// State that an owner derives from rows is published with them (`Store`).
@Suite("Derived state of a store")
struct DerivedStateTests {
    private final class Mark: Sendable {
        let text: String
        init(_ text: String) { self.text = text }
    }

    private struct Refused: Error {}

    private static func text(_ derived: (any StoreDerived)?) -> String { (derived as? Mark)?.text ?? "none" }

    @Test(arguments: StoreWorld.allCases)
    func everySnapshotHasThatOfItsVersion(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let seen = Collected<String>()
            let look: @Sendable (Result<any StoreSnapshot, StoreError>) -> Void = { result in
                guard let snapshot = try? result.get() else { return seen.append("refused") }
                seen.append("\((try? snapshot.text("k")) ?? "-") \(Self.text(snapshot.derived))")
            }
            let first = try store.snapshot()
            // All in one group, where the store makes groups.
            let gate = try await Gate(holding: store)
            for number in 1...3 {
                store.submit(
                    { transaction in
                        let former = Self.text(transaction.derived)
                        transaction.put("k", String(number))
                        transaction.setDerived(Mark("\(number) after \(former)"))
                    }, completion: { _ in })
                store.submitSnapshot(endsGroup: number == 2, look)
            }
            store.submit({ $0.put("k", "4") }, completion: { _ in })
            store.submitSnapshot(endsGroup: false, look)
            gate.open()
            let all = try await seen.first(4)
            let marks = ["1 after none", "2 after 1 after none", "3 after 2 after 1 after none"]
            #expect(all == zip(1...4, marks + [marks[2]]).map { "\($0) \($1)" })
            #expect(Self.text(first.derived) == "none")
            let newest = try store.snapshot()
            #expect(Self.text(newest.derived) == marks[2])
            #expect(Self.text(newest.uncached.derived) == marks[2])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aWriteThatThrowsOrWritesNothingLeavesItAsItWas(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            _ = try await store.write { transaction in
                transaction.put("k", "1")
                transaction.setDerived(Mark("first"))
            }
            await #expect(throws: Refused.self) {
                _ = try await store.write { transaction in
                    transaction.put("k", "2")
                    transaction.setDerived(Mark("refused"))
                    throw Refused()
                }
            }
            _ = try await store.write { $0.setDerived(Mark("without a commit")) }
            try await store.put(["k": "3"])
            let newest = try store.snapshot()
            #expect(Self.text(newest.derived) == "first")
        }
    }
}

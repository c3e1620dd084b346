import HatoStorage
import HatoTesting
import Testing

/// Clients take turns when many writes wait. In which order is tested without a clock (`PlanningOrderTests`).
struct WriteTurnTests {
    /// However many the others have submitted.
    @Test(arguments: StoreWorld.allCases)
    func clientsTakeTurnsAndKeepTheirOrder(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let gate = try await Gate(holding: store)
            let order = Collected<String>()
            func submit(_ client: String, _ number: Int) {
                store.submit(of: client) { transaction in
                    order.append("\(client)\(number)")
                    transaction.put("\(client)\(number)", "1")
                } completion: { _ in
                }
            }
            for number in 0..<500 { submit("a", number) }
            for number in 0..<3 { submit("b", number) }
            let seen = Collected<Int>()
            store.submitSnapshot(of: "b", endsGroup: false) { result in
                seen.append(((try? result.get().rows()) ?? []).filter { $0.hasPrefix("b") }.count)
            }
            submit("b", 3)
            gate.open()
            let found = try await order.first(504)
            #expect(found.filter { $0.hasPrefix("a") } == (0..<500).map { "a\($0)" })
            #expect(found.filter { $0.hasPrefix("b") } == ["b0", "b1", "b2", "b3"])
            #expect(found.firstIndex(of: "b0") ?? .max < found.firstIndex(of: "a499") ?? .max)
            #expect(try await seen.first(1) == [3])
        }
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Counters that many clients increment at once with `ifMatch`: no increment is lost or done twice.
@Suite("Transactions under contention", .timeLimit(.minutes(30)))
struct TransactionTests {
    private static let clients = 8

    @Test func incrementsOfEightClientsAreAllThere() async throws {
        let increments = FaultSettings.increments
        try await LoneMessages.run { messages in
            try await messages.start()
            let tries = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<Self.clients {
                    group.addTask { try await Self.increment(messages.client(), times: increments) }
                }
                return try await group.reduce(0, +)
            }
            let client = messages.client()
            let counter = try await client.call(method: "messages.get", params: ["path": "/counter"])
            #expect(counter["value"] == .number(Double(Self.clients * increments)))
            print("\(Self.clients) × \(increments) increments took \(tries) tries")
            await client.close()
        }
    }

    /// Returns the number of tries.
    private static func increment(_ client: RPCClient, times: Int) async throws -> Int {
        var (tries, done) = (0, 0)
        var etag = "null_etag"
        var value = 0.0
        while done < times {
            tries += 1
            do {
                let result = try await client.call(
                    method: "messages.set",
                    params: ["path": "/counter", "value": .number(value + 1), "ifMatch": .string(etag)])
                etag = result["etag"]?.string ?? ""
                value += 1
                done += 1
            } catch let error as RPCError where error.code == .failedPrecondition {
                etag = error.data["etag"]?.string ?? ""
                value = error.data["value"]?.number ?? 0
            }
        }
        await client.close()
        return tries
    }
}

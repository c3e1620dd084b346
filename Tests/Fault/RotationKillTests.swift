import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization
import Testing

/// `kill -9` of auth during refreshes, also between rotation and response: a session is never lost, and never has two
/// valid tokens.
@Suite("Sessions while auth is killed", .serialized, .timeLimit(.minutes(30)))
struct RotationKillTests {
    private static let sessions = 8

    @Test func everySessionContinuesAndNoneHasTwoTokens() async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        let rounds = (0..<FaultSettings.kills).map { _ in Int.random(in: 20..<120, using: &random) }
        print("rotation kill test: HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        try await FaultStack.run(.apart) { stack in
            let chains = (0..<Self.sessions).map { _ in Chain(stack) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for chain in chains { group.addTask { try await chain.run() } }
                for refreshes in rounds {
                    let goal = chains.reduce(0) { $0 + $1.count } + refreshes
                    _ = try await waiting(for: "\(refreshes) refreshes") {
                        chains.reduce(0) { $0 + $1.count } >= goal ? true : nil
                    }
                    try await stack.killAndRestart(.auth)
                }
                for chain in chains { chain.end() }
                try await group.waitForAll()
            }
            for chain in chains { try await chain.check() }
        }
    }
}

/// One session: each refresh sends the token of the last response. A request without a response is sent again with the
/// same token, as every client does.
private final class Chain: Sendable {
    private struct State {
        var tokens: [String] = []
        var isOver = false
    }

    private let stack: FaultStack
    private let state = Mutex(State())

    init(_ stack: FaultStack) { self.stack = stack }

    var count: Int { state.withLock { $0.tokens.count } }

    func end() { state.withLock { $0.isOver = true } }

    func run() async throws {
        let client = stack.client(.auth)
        var token = try await response(client, "auth.signUp", [:])
        while !state.withLock({ $0.isOver }) {
            state.withLock { $0.tokens.append(token) }
            token = try await response(client, "auth.refresh", ["refreshToken": .string(token)])
        }
        state.withLock { $0.tokens.append(token) }
        await client.close()
    }

    /// The last token is valid, and leads to others; one that is more steps back than may be repeated is not: it ends
    /// the session for the last one too.
    func check() async throws {
        let client = stack.client(.auth)
        var tokens = state.withLock { $0.tokens }
        #expect(Set(tokens).count == tokens.count)
        for _ in 0..<9 {
            let last = try #require(tokens.last)
            tokens.append(try await response(client, "auth.refresh", ["refreshToken": .string(last)]))
        }
        let old = tokens[tokens.count - 10]
        for (token, reason) in [(old, "INVALID_REFRESH_TOKEN"), (try #require(tokens.last), "TOKEN_EXPIRED")] {
            let refused = await #expect(throws: RPCError.self) {
                try await client.call(method: "auth.refresh", params: ["refreshToken": .string(token)])
            }
            #expect(refused?.reason == reason)
        }
        await client.close()
    }

    private func response(_ client: RPCClient, _ method: String, _ params: JSONObject) async throws -> String {
        let result = try await waiting(for: "a response of \(method)") { () -> JSONValue? in
            do {
                return try await client.call(method: method, params: params)
            } catch let error as RPCError where error.code == .unavailable {
                return nil
            }
        }
        return try #require(result["refreshToken"]?.string)
    }
}

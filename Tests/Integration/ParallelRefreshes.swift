import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Many connections present one refresh token at once, as the tabs of an app do. `HATO_ROUNDS=100` goes on longer.
@Suite(.timeLimit(.minutes(10)))
struct ParallelRefreshes {
    private static let rounds = ProcessInfo.processInfo.environment["HATO_ROUNDS"].flatMap { Int($0) } ?? 10

    @Test func fiftyAtOnceStayOneSessionRoundAfterRound() async throws {
        try await TestStack.run { stack in
            let session = try await stack.newUser()
            let clients = (0..<50).map { _ in stack.client(.auth) }
            var tokens = [session.refreshToken]
            let clock = ContinuousClock()
            let start = clock.now
            for round in 0..<Self.rounds {
                let token = try #require(tokens.last)
                let successors = try await withThrowingTaskGroup(of: String.self) { group in
                    for client in clients {
                        group.addTask { try await client.call(Auth.Refresh(refreshToken: token)).refreshToken }
                    }
                    return try await group.reduce(into: [String]()) { $0.append($1) }
                }
                #expect(successors.count == 50 && Set(successors).count == 1, "round \(round)")
                tokens.append(try #require(successors.first))
            }
            print("\(Self.rounds) rounds of 50 refreshes in \(clock.now - start)")
            #expect(Set(tokens).count == Self.rounds + 1, "each round rotates once")
            let administrator = stack.client(.auth, as: .administrator)
            let sessions = try await administrator.call(Auth.Sessions.List(uid: session.uid)).sessions
            #expect(sessions.count == 1)
            let last = try await clients[0].call(Auth.Refresh(refreshToken: try #require(tokens.last)))
            #expect(last.uid == session.uid && !tokens.contains(last.refreshToken))
            for client in clients + [administrator] { await client.close() }
        }
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of services while accounts and sessions end: whatever has a response of auth is refused by messages in the
/// end, its devices are gone from the notifier, and the tree has the profiles of all other accounts.
@Suite("Accounts that end while services are killed", .serialized, .timeLimit(.minutes(30)))
struct FollowKillTests {
    /// Users of one round; a third each is deleted, signed out and left as it is.
    private static let users = 12

    @Test(arguments: [FaultStack.Part.messages, .notifier, .auth])
    func everyEndIsKnownInTheEnd(victim: FaultStack.Part) async throws {
        let (kills, seed) = (FaultSettings.kills, FaultSettings.seed)
        print("follow kill test of \(victim): HATO_FAULT_SEED=\(seed) HATO_FAULT_KILLS=\(kills)")
        var random = SeededRandom(seed: UInt64(seed))
        try await FaultStack.run(.apart) { stack in
            for round in 0..<kills {
                let users = try await self.users(of: stack, round)
                let moment = Int.random(in: 0..<users.count, using: &random)
                for (index, user) in users.enumerated() {
                    if index == moment {
                        async let killed: Void = stack.killAndRestart(victim)
                        try await end(user, stack)
                        try await killed
                    } else {
                        try await end(user, stack)
                    }
                }
                for user in users { try await check(user, stack) }
            }
        }
    }

    private enum End: Int, CaseIterable {
        case deleted, signedOut, none
    }

    private struct User {
        var name: String
        var session: Auth.Session
        var end: End
    }

    /// New users, each with a name and a device.
    private func users(of stack: FaultStack, _ round: Int) async throws -> [User] {
        let (auth, notifier) = (stack.client(.auth), stack.client(.notifier))
        var users: [User] = []
        for number in 0..<Self.users {
            let name = "\(round)-\(number)"
            let session = try #require(try await auth.call(Auth.SignUp(displayName: name), credential: nil).session)
            // The notifier may still be fetching the keys that verify the token.
            _ = try await waiting(for: "the registration of a device") {
                try? await notifier.call(
                    Notifier.Devices.Register(url: "http://127.0.0.1:9/\(name)"),
                    credential: session.idToken)
            }
            users.append(User(name: name, session: session, end: End.allCases[number % End.allCases.count]))
        }
        await auth.close()
        await notifier.close()
        return users
    }

    /// Returns when auth has responded, however often it had to be asked.
    private func end(_ user: User, _ stack: FaultStack) async throws {
        let auth = stack.client(.auth)
        switch user.end {
        case .none: break
        case .deleted:
            _ = try await waiting(for: "the end of an account") {
                do { return try await auth.call(Auth.Users.Delete(uid: user.session.uid)) } catch let error as RPCError
                {
                    return error.reason == "USER_NOT_FOUND" ? Empty() : nil
                }
            }
        case .signedOut:
            _ = try await waiting(for: "the end of a session") {
                do { return try await auth.call(Auth.SignOut(refreshToken: user.session.refreshToken)) } catch let error
                    as RPCError
                {
                    // The response to an earlier try was lost.
                    return error.reason == "TOKEN_EXPIRED" ? Empty() : nil
                }
            }
        }
        await auth.close()
    }

    private func check(_ user: User, _ stack: FaultStack) async throws {
        let (messages, notifier) = (stack.client(.messages), stack.client(.notifier))
        let path = try TreePath("/users/\(user.session.uid)/name")
        if user.end != .none {
            _ = try await waiting(for: "the refusal of \(user.name), \(user.end)") {
                do { _ = try await messages.call(Messages.Get(path: path), credential: user.session.idToken) } catch let
                    error as RPCError
                {
                    return error.reason == "TOKEN_EXPIRED" ? true : nil
                }
                return nil
            }
        }
        _ = try await waiting(for: "the devices of \(user.name), \(user.end)") {
            let count = try await notifier.call(Notifier.Devices.List(uid: user.session.uid)).devices.count
            return count == (user.end == .none ? 1 : 0) ? true : nil
        }
        let name: JSONValue = user.end == .deleted ? .null : .string(user.name)
        _ = try await waiting(for: "the profile of \(user.name), \(user.end)") {
            try await messages.call(Messages.Get(path: path)).value == name ? true : nil
        }
        await messages.close()
        await notifier.close()
    }
}

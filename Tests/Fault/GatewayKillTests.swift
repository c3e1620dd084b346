import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of the gateway and of messages, in turn and at once, while clients of Firebase write, listen and transact
/// over WebSockets. No write with a response is lost, each onDisconnect write is made once, no client sees a wrong
/// value, and every client has the values of the tree at the end.
@Suite("A gateway that is killed", .serialized, .timeLimit(.minutes(30)))
struct GatewayKillTests {
    private static let victims: [[FaultStack.Part]] = [[.gateway], [.messages], [.gateway, .messages]]

    @Test func clientsOfFirebaseLoseNothing() async throws {
        let (clients, kills, seed) = (FaultSettings.sockets, FaultSettings.gatewayKills, FaultSettings.seed)
        print("gateway kill test: HATO_FAULT_SEED=\(seed) HATO_FAULT_SOCKETS=\(clients), \(kills) kills")
        try await FaultStack.run(.apart, hasGateway: true) { stack in
            let history = SocketHistory(clients: clients)
            let tokens = try await prepare(stack)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, token) in tokens.enumerated() {
                    group.addTask {
                        let client = FirebaseClient(number, of: clients, token: token, history)
                        await FirebaseConnection.run(client, port: stack.port(of: .gateway))
                    }
                }
                try await kill(stack, history, SeededRandom(seed: UInt64(seed)))
                history.end()
                _ = try await waiting(for: "\(clients) clients without open requests") {
                    history.quietCount == clients ? true : nil
                }
                try await checkTree(stack, history)
                group.cancelAll()
            }
            try await checkDisconnects(stack, history)
            #expect(history.failures.isEmpty)
            print(history.summary)
            for (part, code) in await stack.stop() { #expect(code == 0, "\(part) ended with \(code)") }
        }
    }

    /// Rules, and an ID token of each client.
    private func prepare(_ stack: FaultStack) async throws -> [String] {
        let (auth, messages) = (stack.client(.auth), stack.client(.messages))
        _ = try await messages.call(Messages.Rules.Set(rules: FaultStack.rules))
        var tokens: [String] = []
        for _ in 0..<FaultSettings.sockets {
            tokens.append(try #require(try await auth.call(Auth.SignUp(), credential: nil).session).idToken)
        }
        await auth.close()
        await messages.close()
        return tokens
    }

    /// Some kills come after some writes of all clients, others while clients come back from the last one. Returns when
    /// all are back.
    private func kill(_ stack: FaultStack, _ history: SocketHistory, _ random: SeededRandom) async throws {
        let clients = FaultSettings.sockets
        var (random, last) = (random, history.progress)
        /// - Parameter missing: how many clients may still be away.
        func wait(missing: Int, acknowledgements: Int) async throws {
            let goal = last.acknowledgements + acknowledgements
            _ = try await waiting(
                for: """
                    \(history.progress.acknowledgements) of \(goal) responses to writes, clients that are away: \
                    \(history.progress.missing(since: last))
                    """
            ) {
                if let failure = history.failures.first { throw WrongMessage(description: failure) }
                let progress = history.progress
                return progress.missing(since: last).count <= missing && progress.acknowledgements >= goal ? true : nil
            }
        }
        for kill in 0..<FaultSettings.gatewayKills {
            if Bool.random(using: &random) {
                try await wait(missing: 0, acknowledgements: Int.random(in: 1...20 * clients, using: &random))
            } else {
                try await wait(missing: Int.random(in: 0..<clients, using: &random), acknowledgements: 0)
            }
            last = history.progress
            try await withThrowingTaskGroup(of: Void.self) { group in
                for victim in Self.victims[kill % Self.victims.count] {
                    group.addTask { try await stack.killAndRestart(victim) }
                }
                try await group.waitForAll()
            }
        }
        try await wait(missing: 0, acknowledgements: clients)
    }

    private struct WrongMessage: Error { let description: String }

    private func checkTree(_ stack: FaultStack, _ history: SocketHistory) async throws {
        let tree = try await read(stack)
        history.checkWrites(in: tree)
        _ = try await waiting(for: history.difference(from: tree) ?? "the tree in every client") {
            history.difference(from: tree) == nil ? true : nil
        }
    }

    /// Called when all clients are gone. A quiet restart changes nothing.
    private func checkDisconnects(_ stack: FaultStack, _ history: SocketHistory) async throws {
        _ = try await waiting(for: "the onDisconnect writes") {
            history.areDisconnectsMade(in: try await read(stack)) ? true : nil
        }
        let tree = try await read(stack)
        history.checkDisconnects(in: tree)
        history.checkWrites(in: tree)
        try await stack.killAndRestart(.messages)
        #expect(try await read(stack) == tree, "a quiet restart changed the tree")
    }

    private func read(_ stack: FaultStack) async throws -> JSONValue {
        let messages = stack.client(.messages)
        let tree = try await messages.call(Messages.Get(path: .root)).value
        await messages.close()
        return tree
    }
}

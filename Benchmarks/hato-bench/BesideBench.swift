import HatoModel
import HatoRPC
import HatoTesting

/// The delay of one client's posts during a large operation of another client.
///
/// Posts are sent at a steady pace, and their delay counts from the moment they were due. The figure of a row is the
/// duration of the large operation.
struct BesideBench: Sendable {
    /// Of a post during a large write or a large removal.
    private static let late = Goal(.p99, .atMost(50_000))
    /// Four leaves each.
    private static let droppedMessages = 250_000
    private static let indexedMessages = 200_000

    var settings: BenchSettings
    /// With the rules of a chat.
    var ruled: TestStack
    /// With its initial rules.
    var stack: TestStack

    /// A large operation that is done once in each turn, with its preparation.
    private struct LargeThing {
        var what: String
        var goals: [Goal] = []
        var prepare: (_ turn: Int) async throws -> Void = { _ in }
        var run: (_ turn: Int) async throws -> Void
    }

    func rows() async throws -> Table {
        var table = Table()
        let user = try await stack.newUser()
        let posts = PacedPosts(
            port: stack.configuration(.messages).port, token: user.idToken, params: ChatRequests.pushes)
        try await measure(
            LargeThing(what: "nothing") { _ in try await Task.sleep(for: .seconds(settings.seconds)) }, posts, &table)
        try await measure(largeWrite(as: user.idToken), posts, &table)
        try await measureRuledWrite(&table)
        try await measure(removal, posts, &table)
        try await measureIndexes(posts, &table)
        return table
    }

    private func measure(_ thing: LargeThing, _ posts: PacedPosts, _ table: inout Table) async throws {
        var outcomes: [PacedPosts.Outcome] = []
        for turn in 0..<settings.windows {
            try await thing.prepare(turn)
            outcomes.append(try await posts.beside { try await thing.run(turn) })
        }
        var row = Table.Row("beside: \(thing.what)", Window(mediansOf: outcomes.map(\.window)), "s", goals: thing.goals)
        row.value = outcomes.map(\.seconds).median
        table.add(row)
        let latest = outcomes.map { Figure.text($0.latestMs.rounded()) }
        Progress.say("  the latest post of each turn: \(latest.joined(separator: ", ")) ms")
    }

    // MARK: Large writes

    /// As much as a line may have, in leaves as small as those of a chat.
    private func largeWrite(as token: String) -> LargeThing {
        var messages: [UInt8] = []
        var count = 0
        while messages.count < (16 << 20) - 1_000 {
            messages += (count == 0 ? "" : ",").utf8
            messages += "\"m\(1_000_000 + count)\":".utf8 + EncodedJSON(ChatRequests.message(count)).bytes
            count += 1
        }
        let value = messages
        return LargeThing(
            what: "a write of 16 MB, \(Figure.text(Double(count * 4))) leaves", goals: [Self.late],
            run: { turn in
                let head = Array("{\"path\":\"/chats/big\(turn)/messages\",\"value\":{".utf8)
                try await call(Messages.Set.method, head + value + Array("}}".utf8), stack, token)
            })
    }

    /// As many messages as an update may have, as large as fit into a line: rules are evaluated for each of them.
    private func measureRuledWrite(_ table: inout Table) async throws {
        let member = try await ruled.newUser()
        let rooms = ChatRooms(names: (0..<97).map { "bench\($0)" } + (0..<settings.windows).map { "big\($0)" })
        try await rooms.admit(member.uid, on: ruled)
        let posts = PacedPosts(
            port: ruled.configuration(.messages).port, token: member.idToken,
            params: (0..<4_096).map {
                ChatRequests.push(room: "bench\($0 % 97)", ChatRequests.ownMessage($0, uid: member.uid))
            })
        let count = 10_000
        let text = String(repeating: "x", count: 1_500)
        let message = EncodedJSON(ChatRequests.ownMessage(0, uid: member.uid, text: text)).bytes
        var values: [UInt8] = []
        for number in 0..<count {
            values += (number == 0 ? "" : ",").utf8
            values += "\"m\(1_000_000 + number)\":".utf8 + message
        }
        let (paths, token) = (values, member.idToken)
        let write = LargeThing(
            what: "a write of 16 MB, \(Figure.text(Double(count))) messages under the rules of a chat",
            goals: [Self.late],
            run: { turn in
                let head = Array("{\"path\":\"/chats/big\(turn)/messages\",\"values\":{".utf8)
                try await call(Messages.Update.method, head + paths + Array("}}".utf8), ruled, token)
            })
        try await measure(write, posts, &table)
    }

    private func call(
        _ method: String, _ params: [UInt8], _ stack: TestStack, _ token: String
    ) async throws {
        let port = stack.configuration(.messages).port
        try await Blocking.run {
            let socket = try RawSocket(port: port, signedInWith: token)
            defer { socket.close() }
            try socket.send(ChatRequests.line(method, params))
            try LineReader(socket).result(of: method)
        }
    }

    // MARK: Removals and indexes

    private var removal: LargeThing {
        LargeThing(
            what: "\(Figure.text(Double(Self.droppedMessages * 4))) leaves are dropped", goals: [Self.late],
            prepare: { try await fill("drop\($0)", Self.droppedMessages) },
            run: { turn in
                let params = EncodedJSON(["path": .string("/chats/drop\(turn)")])
                try await call(Messages.Remove.method, params.bytes, stack, stack.administratorKey)
            })
    }

    private func fill(_ room: String, _ count: Int) async throws {
        let load = MessageLoad(
            port: stack.configuration(.messages).port, administratorKey: stack.administratorKey, rooms: .one(room))
        _ = try await Blocking.run { try load.write(count) }
    }

    private func measureIndexes(_ posts: PacedPosts, _ table: inout Table) async throws {
        try await fill("indexed", Self.indexedMessages)
        let client = stack.client(.messages, as: .administrator)
        let rules = try await client.call(Messages.Rules.Get()).rules
        let more = rules.replacing("\".indexOn\": \"date\"", with: "\".indexOn\": [\"date\", \"senderId\"]")
        let room = "a room of \(Figure.text(Double(Self.indexedMessages)))"
        let count = try await client.call(Messages.Indexes.List()).count
        let set = { (rules: String) in
            _ = try await client.call(Messages.Rules.Set(rules: rules))
            while try await !isSettled(client, rules == more ? nil : count) {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let build = LargeThing(
            what: "an index of \(room) is built", prepare: { _ in try await set(rules) },
            run: { _ in try await set(more) })
        try await measure(build, posts, &table)
        let drop = LargeThing(
            what: "an index of \(room) is dropped", prepare: { _ in try await set(more) },
            run: { _ in try await set(rules) })
        try await measure(drop, posts, &table)
        await client.close()
    }

    /// Whether no index is being built, and there are so many indexes.
    private func isSettled(_ client: RPCClient, _ count: Int?) async throws -> Bool {
        let list = try await client.call(Messages.Indexes.List())
        return list.allSatisfy { $0.state == .ready } && (count ?? list.count) == list.count
    }
}

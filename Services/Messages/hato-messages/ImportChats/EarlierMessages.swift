import HatoCommand
import HatoModel

/// Counts the messages that existed before the import, for the summary.
///
/// The messages of a room that was empty when the import reached it are not read: the first import of a log costs one
/// request a room. Messages that the caller may not read count as missing.
struct EarlierMessages {
    /// Requests in flight for one batch.
    private static let questionsMax = 32

    private let client: CommandClient
    private let database: DatabaseName?
    /// By room, whether it had messages. A batch is written only after the responses about its rooms.
    private var rooms: [String: Task<Bool, any Error>] = [:]

    init(client: CommandClient, database: DatabaseName?) {
        self.client = client
        self.database = database
    }

    /// Counts those that exist; the batch must not be written before.
    mutating func count(_ messages: [ChatBatches.Message]) -> Task<Int, any Error> {
        var asked: [String: Task<Bool, any Error>] = [:]
        for message in messages where asked[message.room] == nil { asked[message.room] = hasMessages(message.room) }
        let (client, database, answers) = (client, database, asked)
        return Task {
            var used: Set<String> = []
            for (room, answer) in answers {
                if try await answer.value { used.insert(room) }
            }
            let candidates = messages.filter { used.contains($0.room) }
            var found = 0
            for start in stride(from: 0, to: candidates.count, by: Self.questionsMax) {
                let some = Array(candidates[start..<min(start + Self.questionsMax, candidates.count)])
                found += try await Self.count(some, client, database)
            }
            return found
        }
    }

    private mutating func hasMessages(_ room: String) -> Task<Bool, any Error> {
        if let answer = rooms[room] { return answer }
        let (client, database) = (client, database)
        let answer = Task<Bool, any Error> {
            let query = TreeQuery(order: .key, limit: .first(1))
            let path = try TreePath("/chats/\(room)/messages")
            let value = try await Self.value(Messages.Get(database: database, path: path, query: query), client)
            return value.object?.isEmpty == false
        }
        rooms[room] = answer
        return answer
    }

    private static func count(
        _ messages: [ChatBatches.Message], _ client: CommandClient, _ database: DatabaseName?
    ) async throws -> Int {
        try await withThrowingTaskGroup(of: Bool.self, returning: Int.self) { group in
            for message in messages {
                group.addTask {
                    // Only the date is read: texts may be long.
                    let path = try TreePath("/chats/\(message.room)/messages/\(message.key)/date")
                    return try await value(Messages.Get(database: database, path: path), client) != .null
                }
            }
            var found = 0
            for try await isThere in group where isThere { found += 1 }
            return found
        }
    }

    private static func value(_ request: Messages.Get, _ client: CommandClient) async throws -> JSONValue {
        do { return try await client.call(request).value } catch let error as RPCError {
            guard error.code == .permissionDenied else { throw error }
            return .null
        }
    }
}

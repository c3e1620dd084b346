import HatoCommand
import HatoModel
import HatoRPC

/// Sends rows to the service, a page a call, a few calls at a time.
///
/// A page ends behind a value or the priority of that value, never behind the priority of an object: the value that
/// makes it an object must come in the same commit, or the priority is set on a missing node. The calls of one
/// connection are processed in the order sent, so a later page finds the nodes of earlier ones.
struct RowUpload {
    private static let rowsMax = 1_000
    private static let bytesMax = 1 << 20
    /// Pages without a response: enough that the service never waits for the next one.
    private static let inFlightMax = 4

    private let client: CommandClient
    private let start: JSONObject
    private(set) var rowCount = 0
    private var rows: [JSONValue] = []
    private var bytes = 0
    /// The path of the last value; its priority may follow.
    private var valuePlace = ""
    private var mayEnd = true

    private let answers: AsyncStream<Result<[UInt8], RPCError>>
    private let answered: AsyncStream<Result<[UInt8], RPCError>>.Continuation
    private var inFlight = 0
    private var version: UInt64?

    init(client: CommandClient, database: DatabaseName?, path: TreePath, disableTriggers: Bool) {
        self.client = client
        var start: JSONObject = ["path": .string(path.text)]
        if let database { start.append("database", .string(database.rawValue)) }
        if disableTriggers { start.append("disableTriggers", true) }
        self.start = start
        (answers, answered) = AsyncStream.makeStream()
    }

    mutating func add(_ row: [JSONValue]) async throws {
        let place = row[0].string ?? ""
        let isPriority = place.utf8.count >= 10 && place.hasSuffix("/.priority")
        let isOfValue = isPriority && mayEnd && isPriorityOfValue(place)
        if rows.count >= Self.rowsMax || bytes >= Self.bytesMax, mayEnd, !isOfValue { try await send() }
        rows.append(.array(row))
        rowCount += 1
        bytes += place.utf8.count + (row[1].string?.utf8.count ?? 8)
        mayEnd = !isPriority || isOfValue
        if !isPriority { valuePlace = place }
    }

    private func isPriorityOfValue(_ place: String) -> Bool {
        let node = place.utf8.dropLast("/.priority".utf8.count)
        return valuePlace == "/" ? node.isEmpty : node.elementsEqual(valuePlace.utf8)
    }

    /// The version of the last page; nil if there was none.
    mutating func finish() async throws -> UInt64? {
        try await send()
        while inFlight > 0 { try await takeResponse() }
        return version
    }

    private mutating func send() async throws {
        guard !rows.isEmpty else { return }
        if inFlight >= Self.inFlightMax { try await takeResponse() }
        var params = start
        params.append("rows", .array(rows))
        let answered = answered
        client.send(method: Messages.Import.method, params: params) { answered.yield($0) }
        inFlight += 1
        rows.removeAll(keepingCapacity: true)
        bytes = 0
    }

    private mutating func takeResponse() async throws {
        var iterator = answers.makeAsyncIterator()
        guard let answer = await iterator.next() else { return }
        inFlight -= 1
        let result = try Messages.Import.decodeResult(try JSONParser.parse(answer.get()))
        version = max(version ?? 0, result.version)
    }
}

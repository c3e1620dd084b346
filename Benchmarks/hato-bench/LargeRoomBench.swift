import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Years of chats: reads and posts of members under the rules of a chat, compared with an empty database, and the
/// memory that remains in use.
struct LargeRoomBench: Sendable {
    private static let large = "hall"
    /// Of small rooms, on the average.
    private static let messagesPerRoom = 450
    private static let shapes = [LoadShape(64, 1), LoadShape(4, 64)]

    var settings: BenchSettings
    /// To be filled.
    var full: TestStack
    var empty: TestStack

    func rows() async throws -> Table {
        var table = Table()
        try await fill()
        let member = try await full.newUser()
        let rooms = ChatRooms(names: (0..<roomCount).map(MessageLoad.Rooms.name))
        try await rooms.admit(member.uid, on: full)
        try await ChatRooms(names: [Self.large]).admit(member.uid, on: full)
        try await rest()
        let newcomer = try await empty.newUser()
        try await rooms.admit(newcomer.uid, on: empty)
        try await addReads(rooms, member.idToken, &table)
        for shape in Self.shapes {
            let full = Posting(self.full.configuration(.messages).port, member.idToken, rooms.posts(as: member.uid))
            let empty = Posting(
                self.empty.configuration(.messages).port, newcomer.idToken, rooms.posts(as: newcomer.uid))
            let settings = settings
            let windows = try await Blocking.run { try Self.inTurn(shape, settings, full: full, empty: empty) }
            add(windows, of: shape, to: &table)
        }
        try await rest()
        table.add(
            Table.Row(
                what: "large room: memory of the whole stack, after all that", value: Double(try resident()),
                unit: "MB",
                goals: [Goal(.value, .atMost(600))]))
        return table
    }

    private var messages: String { Figure.text(Double(settings.messages)) }

    private var roomCount: Int { max(1, settings.messages * 9 / 10 / Self.messagesPerRoom) }

    private func resident() throws -> Int { try ResidentMemory.bytes(of: full.processIdentifier) >> 20 }

    private func fill() async throws {
        let load = MessageLoad(
            port: full.configuration(.messages).port, administratorKey: full.administratorKey,
            rooms: .many(roomCount, large: Self.large))
        let count = settings.messages
        let watch = try MemoryWatch(full.processIdentifier)
        _ = try await Blocking.run { try load.write(count) }
        let highest = (watch.first + watch.growth()) >> 20
        Progress.say(
            "in \(Figure.text(Double(roomCount))) rooms and a large one; \(try resident()) MB of memory, \(highest) at most"
        )
    }

    /// Until the store has no compaction left to do, or two minutes have passed.
    private func rest() async throws {
        let client = full.client(.messages, as: .administrator)
        let start = Clock.now()
        var store: [String: Double] = [:]
        repeat {
            try await Task.sleep(for: .seconds(2))
            store = try await client.call(Messages.Stats()).store
        } while Clock.now() - start < 120_000_000_000 && store["rocksdb.running_compactions"] ?? 0 > 0
        await client.close()
        let seconds = Figure.text((Double(Clock.now() - start) / 1e9).rounded())
        Progress.say("rested for \(seconds) s; \(try resident()) MB of memory")
    }

    // MARK: Reads

    private func addReads(_ rooms: ChatRooms, _ token: String, _ table: inout Table) async throws {
        let largeSize = Figure.text(Double(settings.messages / 10))
        let places = [
            ("the room of \(largeSize)", ChatRooms(names: [Self.large])),
            ("any of \(Figure.text(Double(roomCount))) rooms", rooms),
        ]
        let (settings, port) = (settings, full.configuration(.messages).port)
        let floor = try await Blocking.run { try Floors.wakeUp(seconds: settings.seconds) }
        table.add("floor: wake-up, just before the reads", floor, "/s")
        for limit in [1, 50] {
            for (place, rooms) in places {
                let lines = rooms.reads(newest: limit)
                let window = try await Blocking.run {
                    var load = try RawLoad(at: port, as: token, LoadShape(1, 1), requests: lines)
                    defer { load.close() }
                    return try load.windows(settings)
                }
                table.add(
                    "large room: newest \(limit) in \(place), of \(messages)", window, "reads/s",
                    goals: [Goal(.p50, .atMost(500))])
            }
        }
    }

    // MARK: Posts

    private struct Posting: Sendable {
        var port: Int
        var token: String
        var lines: [[UInt8]]

        init(_ port: Int, _ token: String, _ lines: [[UInt8]]) {
            self.port = port
            self.token = token
            self.lines = lines
        }

        func load(_ shape: LoadShape) throws -> RawLoad { try RawLoad(at: port, as: token, shape, requests: lines) }
    }

    private static func inTurn(
        _ shape: LoadShape, _ settings: BenchSettings, full: Posting, empty: Posting
    ) throws -> (full: [Window], empty: [Window]) {
        var fullLoad = try full.load(shape)
        defer { fullLoad.close() }
        var emptyLoad = try empty.load(shape)
        defer { emptyLoad.close() }
        try emptyLoad.warmUp()
        try fullLoad.warmUp()
        var windows: (full: [Window], empty: [Window]) = ([], [])
        for _ in 0..<settings.windows {
            windows.empty.append(try emptyLoad.window(seconds: settings.seconds))
            windows.full.append(try fullLoad.window(seconds: settings.seconds))
        }
        return windows
    }

    private func add(_ windows: (full: [Window], empty: [Window]), of shape: LoadShape, to table: inout Table) {
        table.add("large room: posts, empty, \(shape)", Window(mediansOf: windows.empty), "posts/s")
        var row = Table.Row("large room: posts, of \(messages), \(shape)", Window(mediansOf: windows.full), "posts/s")
        row.ratio = (windows.full.map(\.perSecond).ratio(to: windows.empty.map(\.perSecond)), "empty")
        row.goals = [Goal(.ratio, .atLeast(0.7))]
        table.add(row)
    }
}

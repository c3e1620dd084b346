import HatoModel
import HatoRPC
import HatoTesting
import Synchronization

/// One room with 100 listeners and one with 1,000: the delay of a post at the listeners, and the deliveries a second in
/// a burst.
///
/// Posts are sent by the public client, listeners are plain sockets on one thread: the figure is that of the server.
struct FanOutBench: Sendable {
    private static let postsPerSecond = 50

    var settings: BenchSettings
    var stack: TestStack

    private struct Room {
        var name: String
        var listeners: Int
        /// Microseconds.
        var lateMax: Double
        /// Of one burst; so many that all rooms get about the same.
        var burstPosts: Int
    }

    private static let rooms = [
        Room(name: "fan", listeners: 100, lateMax: 5_000, burstPosts: 4_000),
        Room(name: "hall", listeners: 1_000, lateMax: 20_000, burstPosts: 400),
    ]

    func rows() async throws -> Table {
        var table = Table()
        for room in Self.rooms { try await measure(room, &table) }
        return table
    }

    private func measure(_ room: Room, _ table: inout Table) async throws {
        let token = try await stack.newUser().idToken
        let port = stack.configuration(.messages).port
        let sockets = try await Blocking.run {
            try (0..<room.listeners).map { _ in
                let socket = try RawSocket(port: port, signedInWith: token)
                try socket.openListener(on: room.name)
                return socket
            }
        }
        let writer = stack.client(.messages, as: .user(idToken: token))
        _ = try await deliveries(of: room.burstPosts / 10, to: sockets) { try await burst($0, room, writer) }
        var bare: [Window] = []
        var paced: [Window] = []
        var bursts: [Window] = []
        for _ in 0..<settings.windows {
            let posts = max(1, Int(settings.seconds * Double(Self.postsPerSecond)))
            let floor = BareFanOut(
                listeners: room.listeners, posts: posts, postsPerSecond: Self.postsPerSecond)
            bare.append(try await floor.window())
            paced.append(try await deliveries(of: posts, to: sockets) { try await pace($0, room, writer) })
            bursts.append(
                try await deliveries(of: room.burstPosts, to: sockets) { try await burst($0, room, writer) })
        }
        let listeners = "\(Figure.text(Double(room.listeners))) listeners"
        let load = "\(Self.postsPerSecond) posts/s to \(listeners)"
        table.add("floor: nothing but writing \(load)", Window(mediansOf: bare), "deliveries/s")
        table.add(
            "fan-out: \(load)", Window(mediansOf: paced), "deliveries/s", goals: [Goal(.p99, .atMost(room.lateMax))])
        table.add(
            "fan-out: a burst of \(Figure.text(Double(room.burstPosts))) posts to \(listeners)",
            Window(mediansOf: bursts), "deliveries/s", goals: [Goal(.value, .atLeast(100_000))])
        for socket in sockets { socket.close() }
        await writer.close()
    }

    /// The delays of so many posts at the listeners.
    private func deliveries(
        of posts: Int, to sockets: [RawSocket], _ write: (Int) async throws -> Void
    ) async throws -> Window {
        async let window = Blocking.run {
            var reader = try DeliveryReader(sockets)
            return try reader.window(of: posts)
        }
        try await write(posts)
        return try await window
    }

    /// Each post at its time, however long the one before it took.
    private func pace(_ posts: Int, _ room: Room, _ writer: RPCClient) async throws {
        let clock = ContinuousClock()
        let start = clock.now
        for number in 0..<posts {
            try await Task.sleep(until: start + .milliseconds(number * 1_000 / Self.postsPerSecond), clock: clock)
            let params: JSONObject = [
                "path": .string("/chats/\(room.name)/messages"),
                "value": ChatRequests.message(number, text: DeliveryReader.text()),
            ]
            _ = try await writer.call(method: Messages.Push.method, params: params)
        }
    }

    /// All at once; ends when all have a response.
    private func burst(_ posts: Int, _ room: Room, _ writer: RPCClient) async throws {
        let requests = (0..<posts).map {
            ChatRequests.push(room: room.name, ChatRequests.message($0, text: DeliveryReader.text()))
        }
        let missing = Atomic(posts)
        let failure = Mutex<BenchError?>(nil)
        await withCheckedContinuation { continuation in
            for request in requests {
                writer.send(method: Messages.Push.method, params: request) { result in
                    if case .failure(let error) = result { failure.withLock { $0 = BenchError("push: \(error)") } }
                    if missing.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue == 0 {
                        continuation.resume()
                    }
                }
            }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}

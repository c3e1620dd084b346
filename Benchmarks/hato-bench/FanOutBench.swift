import HatoModel
import HatoRPC
import HatoTesting

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
        let fan = FanOut(room: room.name, postsPerSecond: Self.postsPerSecond, writer: writer)
        _ = try await fan.burst(of: room.burstPosts / 10, to: sockets)
        var bare: [Window] = []
        var paced: [Window] = []
        var bursts: [Window] = []
        for _ in 0..<settings.windows {
            let posts = max(1, Int(settings.seconds * Double(Self.postsPerSecond)))
            let floor = BareFanOut(
                listeners: room.listeners, posts: posts, postsPerSecond: Self.postsPerSecond)
            bare.append(try await floor.window())
            paced.append(try await fan.paced(posts, to: sockets))
            bursts.append(try await fan.burst(of: room.burstPosts, to: sockets))
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
}

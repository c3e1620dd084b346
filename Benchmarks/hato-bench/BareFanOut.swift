import Foundation

/// The time that the machine itself takes to send a post to many sockets: as many threads as a server has loops, each
/// of which writes to its part of the sockets, and nothing else. No server is faster.
struct BareFanOut: Sendable {
    private static let threads = 2

    var listeners: Int
    var posts: Int
    var postsPerSecond: Int

    func window() async throws -> Window {
        let (served, listening) = try await Blocking.run {
            let (listening, port) = try RawSocket.listening()
            defer { listening.close() }
            var pairs: (served: [RawSocket], listening: [RawSocket]) = ([], [])
            for _ in 0..<listeners {
                pairs.listening.append(try RawSocket(port: port))
                pairs.served.append(try listening.accepted())
            }
            return pairs
        }
        defer { for socket in served + listening { socket.close() } }
        async let window = Blocking.run {
            var reader = try DeliveryReader(listening)
            return try reader.window(of: posts)
        }
        try await withThrowingTaskGroup { group in
            for thread in 0..<Self.threads {
                let part = served.enumerated().filter { $0.offset % Self.threads == thread }.map(\.element)
                group.addTask { try await Blocking.run { try write(to: part) } }
            }
            try await group.waitForAll()
        }
        return try await window
    }

    private func write(to sockets: [RawSocket]) throws {
        let start = Clock.now()
        for number in 0..<posts {
            let due = start + UInt64(number) * 1_000_000_000 / UInt64(postsPerSecond)
            let now = Clock.now()
            if due > now { Thread.sleep(forTimeInterval: Double(due - now) / 1e9) }
            // About the bytes of an event besides the text.
            let event = String(repeating: "x", count: 200) + DeliveryReader.text() + "\n"
            let bytes = Array(event.utf8)
            for socket in sockets { try socket.send(bytes) }
        }
    }
}

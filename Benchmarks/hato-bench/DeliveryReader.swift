import Foundation

/// Reads the data of many listeners on the calling thread, and searches it for the posts: nothing is decoded.
struct DeliveryReader {
    /// Is once in each post, and its first byte nowhere else, so that the search costs little.
    private static let marker = Array("🕊".utf8)
    /// The digits of the time at the beginning of a text.
    private static let digits = 20

    /// Nanoseconds; connections that send more than posts are never silent.
    private static let patience: UInt64 = 120_000_000_000

    private struct Listener {
        var posts = 0
        /// The end of the bytes read so far, which may be half a marker.
        var rest: [UInt8] = []
    }

    private let sockets: [RawSocket]
    private var listeners: [Listener]
    private let set: SocketSet
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)
    private var latencies: [UInt32] = []

    init(_ sockets: [RawSocket]) throws {
        self.sockets = sockets
        listeners = sockets.map { _ in Listener() }
        set = try SocketSet(sockets)
    }

    /// A text that contains the time of its sending.
    static func text() -> String {
        let now = String(Clock.now())
        let filled = String(repeating: "0", count: digits - now.count) + now
        return "🕊\(filled) " + String(repeating: "いま帰る ", count: 6)
    }

    /// Reads until each listener has received `count` more posts; the window begins now.
    mutating func window(of count: Int) throws -> Window {
        let start = Clock.now()
        latencies.removeAll(keepingCapacity: true)
        for index in listeners.indices { listeners[index].posts = 0 }
        var missing = listeners.count
        var ready: [Int] = []
        while missing > 0 {
            try set.wait(&ready)
            guard Clock.now() - start < Self.patience else { throw BenchError("\(missing) listeners lack a post") }
            for index in ready {
                let before = listeners[index].posts
                try read(index)
                guard listeners[index].posts <= count else { throw BenchError("a listener saw a post twice") }
                if before < count, listeners[index].posts == count { missing -= 1 }
            }
        }
        return Window(seconds: Double(Clock.now() - start) / 1e9, latencies: latencies)
    }

    private mutating func read(_ index: Int) throws {
        let rest = listeners[index].rest
        buffer.replaceSubrange(..<rest.count, with: rest)
        let count = rest.count + (try sockets[index].receive(into: &buffer, at: rest.count))
        let now = Clock.now()
        var posts = 0
        var from = 0
        buffer.withUnsafeBytes { bytes in
            while let place = Self.first(in: bytes, from..<count) {
                let time = place + Self.marker.count
                guard time + Self.digits <= count else { break }
                from = time + Self.digits
                let sent = bytes[time..<from].reduce(into: UInt64(0)) {
                    $0 = $0 &* 10 &+ UInt64($1 &- UInt8(ascii: "0"))
                }
                latencies.append(UInt32(clamping: (now &- sent) / 1_000))
                posts += 1
            }
        }
        listeners[index].posts += posts
        listeners[index].rest = Array(buffer[max(from, count - Self.marker.count - Self.digits)..<count])
    }

    /// The first position of the marker.
    private static func first(in bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
        guard let start = bytes.baseAddress,
            let found = memchr(start + range.lowerBound, Int32(marker[0]), range.count)
        else { return nil }
        return UnsafeRawPointer(found) - start
    }
}

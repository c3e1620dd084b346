import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization

/// One room with 100 listeners: how late a post reaches them, and how many deliveries a second they get in a burst.
///
/// Listeners are raw sockets on one thread that only look for the texts of the posts: what is measured is the server.
struct FanOutBench: Sendable {
    static let listeners = 100
    static let pacedPosts = 300
    static let burstPosts = 4_000
    /// Begins with a byte that stands nowhere else, so that looking for it costs little.
    private static let lastText = "🕊 the last one, and no more"

    var settings: BenchSettings
    var stack: TestStack

    func measure(_ table: inout Table) async throws {
        let user = try await stack.newUser()
        let port = stack.configuration(.messages).port
        let token = user.idToken
        let sockets = try await RawSocket.onThread {
            try (0..<Self.listeners).map { _ in try Self.listen(port, token) }
        }
        let writer = stack.client(.messages, as: .user(idToken: token))
        let paced = Readers(sockets: sockets)
        async let seen = RawSocket.onThread { try paced.readPaced(Self.pacedPosts * Self.listeners) }
        for _ in 0..<Self.pacedPosts {
            let params: JSONObject = [
                "path": "/chats/fan/messages", "value": PostBench.message(0, text: "t\(Clock.now())"),
            ]
            _ = try await writer.call(method: "messages.push", params: params)
            try await Task.sleep(for: .milliseconds(20))
        }
        let latencies = Latencies(try await seen)
        table.add(
            "fan-out: 50 posts/s to \(Self.listeners) listeners", "", latency: latencies,
            note: "from sending to each listener")
        let took = try await burst(writer, sockets)
        let deliveries = Double(Self.burstPosts * Self.listeners) / took
        table.add(
            "fan-out: burst of \(Rate.text(Double(Self.burstPosts))) posts", "\(Rate.text(deliveries)) deliveries/s")
        for socket in sockets { socket.close() }
        await writer.close()
    }

    private static func listen(_ port: Int, _ token: String) throws -> RawSocket {
        let socket = try RawSocket(port: port)
        _ = try socket.call("session.authenticate", "{\"auth\":\"\(token)\"}")
        _ = try socket.call("messages.listen", "{\"path\":\"/chats/fan/messages\"}")
        // The value that is there.
        _ = try socket.readLine()
        return socket
    }

    private func burst(_ writer: RPCClient, _ sockets: [RawSocket]) async throws -> Double {
        let readers = Readers(sockets: sockets)
        let start = Clock.now()
        async let last = RawSocket.onThread { try readers.readUntil(Self.lastText) }
        await withCheckedContinuation { continuation in
            let box = AnswerCount(continuation)
            for number in 0..<Self.burstPosts {
                let isLast = number == Self.burstPosts - 1
                let value = PostBench.message(number, text: isLast ? Self.lastText : nil)
                let params = EncodedJSON(.object(["path": "/chats/fan/messages", "value": value]))
                writer.send(method: "messages.push", params: params) { _ in
                    box.answered(of: Self.burstPosts)
                }
            }
        }
        return Double(try await last - start) / 1e9
    }
}

/// Counts answers, and lets go of who waits for all of them.
private final class AnswerCount: Sendable {
    private let count = Atomic(0)
    private let waiting: CheckedContinuation<Void, Never>

    init(_ waiting: CheckedContinuation<Void, Never>) { self.waiting = waiting }

    func answered(of all: Int) {
        if count.wrappingAdd(1, ordering: .relaxed).newValue == all { waiting.resume() }
    }
}

/// Reads many listeners on the calling thread.
private struct Readers: Sendable {
    var sockets: [RawSocket]

    /// Latencies of texts that are the time they were sent (`t` and nanoseconds).
    func readPaced(_ count: Int) throws -> [UInt32] {
        let marker = Array("\"text\":\"t".utf8)
        var latencies: [UInt32] = []
        try read(marker) { rest, _ in
            var sent: UInt64 = 0
            for byte in rest {
                guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { break }
                sent = sent &* 10 &+ UInt64(byte - UInt8(ascii: "0"))
            }
            latencies.append(UInt32(clamping: (Clock.now() - sent) / 1_000))
            return latencies.count == count
        }
        return latencies
    }

    /// When the last listener has seen `text`.
    func readUntil(_ text: String) throws -> UInt64 {
        var missing = Set(sockets.indices)
        try read(Array(text.utf8)) { _, socket in
            missing.remove(socket)
            return missing.isEmpty
        }
        return Clock.now()
    }

    /// Calls for each place where `marker` stands, with what follows it (at least 24 bytes) and the number of the
    /// socket.
    private func read(_ marker: [UInt8], _ found: (ArraySlice<UInt8>, Int) -> Bool) throws {
        let tail = marker.count + 24
        var set = SocketSet(sockets)
        var rests = [[UInt8]](repeating: [], count: sockets.count)
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            let ready = set.ready(within: 30_000)
            guard !ready.isEmpty else { throw BenchError("no event came for 30 s") }
            for index in ready {
                let count = try sockets[index].receive(into: &buffer)
                var bytes = rests[index] + buffer[..<count]
                var from = 0
                while let place = Self.find(marker, in: bytes, from: from), place + tail <= bytes.count {
                    if found(bytes[(place + marker.count)...], index) { return }
                    from = place + marker.count
                }
                bytes.removeFirst(max(from, bytes.count - tail))
                rests[index] = bytes
            }
        }
    }

    private static func find(_ marker: [UInt8], in bytes: [UInt8], from: Int) -> Int? {
        bytes.withUnsafeBytes { all in
            guard let start = all.baseAddress else { return nil }
            var place = from
            while place + marker.count <= all.count,
                let first = memchr(start + place, Int32(marker[0]), all.count - place - marker.count + 1)
            {
                place = UnsafeRawPointer(first) - start
                if memcmp(first, marker, marker.count) == 0 { return place }
                place += 1
            }
            return nil
        }
    }
}

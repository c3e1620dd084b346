import Foundation
import HatoModel
import HatoRPC
import Synchronization

/// Posts of one client at a steady pace, whatever the state of earlier ones.
///
/// The delay of a post counts from the moment it was due: one that waits delays those behind it too, as for a real
/// sender. A client that sends the next post after a response would count one late post and miss the others.
struct PacedPosts: Sendable {
    /// The figures during another operation.
    struct Outcome: Sendable {
        var window: Window
        /// The duration of the other operation.
        var seconds: Double
        var latestMs: Double
    }

    private static let postsPerSecond = 500
    private static let interval = UInt64(1_000_000_000 / postsPerSecond)

    /// Of one run: the sender publishes their number before it sends the last one.
    private final class Run: Sendable {
        let isOver = Atomic(false)
        let total = Atomic(Int.max)
    }

    var port: Int
    var token: String
    /// The params of the posts, in turn.
    var params: [EncodedJSON]

    /// Posts are sent while `body` runs, and for a second at least.
    func beside(_ body: () async throws -> Void) async throws -> Outcome {
        let socket = try await Blocking.run { try RawSocket(port: port, signedInWith: token) }
        defer { socket.close() }
        let run = Run()
        let start = Clock.now() + Self.interval
        async let sent: Void = Blocking.run { try send(run, start, socket) }
        async let latencies = Blocking.run { try read(run, start, socket) }
        let begin = Clock.now()
        var failure: (any Error)?
        do { try await body() } catch { failure = error }
        let seconds = Double(Clock.now() - begin) / 1e9
        if seconds < 1 { try await Task.sleep(for: .seconds(1 - seconds)) }
        run.isOver.store(true, ordering: .sequentiallyConsistent)
        let late = try await latencies
        try await sent
        if let failure { throw failure }
        let all = Double(Clock.now() - start) / 1e9
        return Outcome(
            window: Window(seconds: all, latencies: late), seconds: seconds,
            latestMs: Double(late.max() ?? 0) / 1_000)
    }

    private func send(_ run: Run, _ start: UInt64, _ socket: RawSocket) throws {
        do {
            var number = 0
            while true {
                let due = start + UInt64(number) * Self.interval
                let now = Clock.now()
                if due > now { Thread.sleep(forTimeInterval: Double(due - now) / 1e9) }
                let isLast = run.isOver.load(ordering: .sequentiallyConsistent)
                if isLast { run.total.store(number + 1, ordering: .sequentiallyConsistent) }
                let line = ChatRequests.line(
                    Messages.Push.method, params[number % params.count].bytes, id: RequestID.first + number % 9_000)
                try socket.send(line)
                if isLast { return }
                number += 1
            }
        } catch {
            socket.end()
            throw error
        }
    }

    /// Responses to the pushes of one connection come in the order of the pushes.
    private func read(_ run: Run, _ start: UInt64, _ socket: RawSocket) throws -> [UInt32] {
        let reader = LineReader(socket)
        var latencies: [UInt32] = []
        while latencies.count < run.total.load(ordering: .sequentiallyConsistent) {
            let line = try reader.result(of: Messages.Push.method)
            let number = latencies.count
            guard line.withUnsafeBytes(RequestID.read) == RequestID.first + number % 9_000 else {
                throw BenchError("the response of post \(number) is \(String(decoding: line, as: UTF8.self))")
            }
            let due = start + UInt64(number) * Self.interval
            latencies.append(UInt32(clamping: (Clock.now() - min(due, Clock.now())) / 1_000))
        }
        return latencies
    }
}

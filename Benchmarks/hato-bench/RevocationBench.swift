import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization

/// How long messages still takes a token whose sessions auth has revoked, while revocations follow each other.
struct RevocationBench: Sendable {
    private static let users = 1_000
    /// Between two looks at a token that is still taken.
    private static let pause = 0.001
    private static let secondsMax = 60.0
    /// The reason of a refused token.
    private static let revoked = "TOKEN_EXPIRED"

    var stack: TestStack

    /// When each revocation had its response, in the order of the users.
    private final class Times: Sendable {
        private let times = Mutex<[UInt64]>([])

        func add() { times.withLock { $0.append(Clock.now()) } }

        /// Nil: the response has not come yet.
        subscript(number: Int) -> UInt64? { times.withLock { number < $0.count ? $0[number] : nil } }
    }

    func rows() async throws -> Table {
        var sessions: [Auth.Session] = []
        for _ in 0..<Self.users { sessions.append(try await stack.newUser()) }
        let (bench, made, times) = (self, sessions, Times())
        async let window = Blocking.run { try bench.waitForRefusals(made, since: times) }
        try await Blocking.run { try bench.revoke(made, times) }
        var table = Table()
        table.add(
            "auth: revocation until messages refuses the token, \(Figure.text(Double(Self.users))) in a row",
            try await window, "/s", goals: [Goal(.p99, .atMost(1_000_000))])
        return table
    }

    private func revoke(_ sessions: [Auth.Session], _ times: Times) throws {
        let socket = try RawSocket(port: stack.configuration(.auth).port, signedInWith: stack.administratorKey)
        defer { socket.close() }
        let reader = LineReader(socket)
        for session in sessions {
            let params = EncodedJSON(["uid": .string(session.uid)])
            try socket.send(ChatRequests.line(Auth.Users.Revoke.method, params.bytes))
            try reader.result(of: Auth.Users.Revoke.method)
            times.add()
        }
    }

    /// Looks at the tokens one after the other: a delay of one counts in those behind it, too.
    private func waitForRefusals(_ sessions: [Auth.Session], since times: Times) throws -> Window {
        let socket = try RawSocket(port: stack.configuration(.messages).port)
        defer { socket.close() }
        let reader = LineReader(socket)
        let start = Clock.now()
        let end = start + UInt64(Self.secondsMax * 1e9)
        var latencies: [UInt32] = []
        for (number, session) in sessions.enumerated() {
            let params = EncodedJSON(["auth": .string(session.idToken)])
            let line = ChatRequests.line(Session.Authenticate.method, params.bytes)
            while try isTaken(line, socket, reader) {
                guard Clock.now() < end else { throw BenchError("token \(number) is not refused") }
                Thread.sleep(forTimeInterval: Self.pause)
            }
            let now = Clock.now()
            // Messages may refuse the token before auth has responded.
            latencies.append(UInt32(clamping: (now - min(times[number] ?? now, now)) / 1_000))
        }
        return Window(seconds: Double(Clock.now() - start) / 1e9, latencies: latencies)
    }

    private func isTaken(_ line: [UInt8], _ socket: RawSocket, _ reader: LineReader) throws -> Bool {
        try socket.send(line)
        while true {
            let response = String(decoding: try reader.next(), as: UTF8.self)
            // A notification that the identity of the connection has ended may come first.
            guard response.contains("\"id\":\(RequestID.first)") else { continue }
            if response.contains("\"result\"") { return true }
            guard response.contains(Self.revoked) else { throw BenchError(response) }
            return false
        }
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Whether the duration of a response shows that an account exists.
struct TimingBench: Sendable {
    /// The reason of a refused sign-in, with a wrong password or for an unknown address.
    static let wrong = "INVALID_LOGIN_CREDENTIALS"
    private static let accounts = 20
    private static let signInsPerWindow = 8
    /// So few that no account waits after wrong passwords.
    private static let signInsMax = accounts * 9
    private static let codesPerWindow = 60
    /// Requests of all clients are limited (setting `codes-burst`), and each pair is two of them.
    private static let codesMax = 450
    /// bcrypt of cost 10; of no password.
    private static let bcrypt = "$2b$10$abcdefghijklmnopqrstuu" + String(repeating: "b", count: 31)

    var settings: BenchSettings
    var stack: TestStack

    /// A call about an account that exists, and the same about one that does not.
    private struct Pair: Sendable {
        var known: [UInt8]
        var unknown: [UInt8]
        /// What is in both responses.
        var response: String
        /// Seconds after each response, in which its mail is sent.
        var pause = 0.0
    }

    func rows() async throws -> Table {
        try await makeAccounts()
        var table = Table()
        let count = min(settings.windows * Self.signInsPerWindow, Self.signInsMax)
        try await measure("sign-in with a wrong password", &table, (0..<count).map { signIn("known", $0) })
        try await measure(
            "sign-in with a wrong password, imported bcrypt of cost 10", &table,
            (0..<count).map { signIn("imported", $0) })
        try await measure(
            "request for a code", &table,
            (0..<min(settings.windows * Self.codesPerWindow, Self.codesMax)).map { number in
                Pair(
                    known: Self.code("known\(number % Self.accounts)"), unknown: Self.code("stranger\(number)"),
                    response: "\"result\"", pause: 0.02)
            })
        // Last: with it an address gets no session.
        try await acceptEverySignUp()
        try await measure(
            "sign-up that is only accepted", &table,
            (0..<count).map { number in
                Pair(
                    known: Self.signUp("known\(number % Self.accounts)"), unknown: Self.signUp("new\(number)"),
                    response: "\"accepted\":true", pause: 0.02)
            })
        return table
    }

    private func acceptEverySignUp() async throws {
        let client = stack.client(.auth, as: .administrator)
        var request = Auth.Settings.Set()
        request.signUpAlwaysAccepts = true
        _ = try await client.call(request)
        await client.close()
    }

    private static func signUp(_ name: String) -> [UInt8] {
        ChatRequests.line(
            Auth.SignUp.method,
            Array("{\"email\":\"\(name)@example.com\",\"password\":\"\(AuthRequests.password)\"}".utf8))
    }

    private func signIn(_ kind: String, _ number: Int) -> Pair {
        Pair(
            known: AuthRequests.signIn("\(kind)\(number % Self.accounts)@example.com", "a wrong password"),
            unknown: AuthRequests.signIn("un\(kind)\(number)@example.com", "a wrong password"), response: Self.wrong)
    }

    private static func code(_ name: String) -> [UInt8] {
        ChatRequests.line(
            Auth.Code.Request.method,
            Array("{\"type\":\"passwordReset\",\"email\":\"\(name)@example.com\"}".utf8))
    }

    private func measure(_ what: String, _ table: inout Table, _ pairs: [Pair]) async throws {
        let port = stack.configuration(.auth).port
        let (known, unknown) = try await Blocking.run {
            let socket = try RawSocket(port: port)
            defer { socket.close() }
            let reader = LineReader(socket)
            // Nothing is measured for the first time.
            for pair in pairs.prefix(2) { _ = try Self.milliseconds(pair.unknown, pair, socket, reader) }
            var (known, unknown): ([Double], [Double]) = ([], [])
            for pair in pairs {
                known.append(try Self.milliseconds(pair.known, pair, socket, reader))
                unknown.append(try Self.milliseconds(pair.unknown, pair, socket, reader))
            }
            return (known, unknown)
        }
        var row = Table.Row(
            what: "auth: \(what), \(known.count) times", value: known.median, unit: "ms",
            goals: [Goal(.ratio, .atLeast(0.8)), Goal(.ratio, .atMost(1.25))])
        row.ratio = (known.median / unknown.median, "an unknown address")
        table.add(row)
    }

    private static func milliseconds(
        _ line: [UInt8], _ pair: Pair, _ socket: RawSocket, _ reader: LineReader
    ) throws -> Double {
        let start = Clock.now()
        try socket.send(line)
        let response = String(decoding: try reader.next(), as: UTF8.self)
        let end = Clock.now()
        guard response.contains(pair.response) else { throw BenchError(response) }
        if pair.pause > 0 { Thread.sleep(forTimeInterval: pair.pause) }
        return Double(end - start) / 1e6
    }

    private func makeAccounts() async throws {
        let client = stack.client(.auth, as: .administrator)
        var rows: [Auth.Users.Row] = []
        for number in 0..<Self.accounts {
            var request = Auth.Users.Create()
            request.email = "known\(number)@example.com"
            request.password = AuthRequests.password
            _ = try await client.call(request)
            var row = Auth.Users.Row(uid: "imported\(number)")
            row.email = "imported\(number)@example.com"
            row.passwordHash = Self.bcrypt
            rows.append(row)
        }
        let errors = try await client.call(Auth.Users.Import(users: rows)).errors
        await client.close()
        if let error = errors.first { throw BenchError(error.message) }
    }
}

import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Sign-ins on all cores: how many, how late other calls are meanwhile, and their memory.
struct SignInBench: Sendable {
    private static let atOnce = 1_000
    private static let accounts = 48
    /// Enough that no hashing thread waits for a request.
    private static let clients = 8
    private static let verificationsPerSecond = 100
    private static let refreshesPerSecond = 50
    private static let late = Goal(.p99, .atMost(5_000))

    var settings: BenchSettings
    var stack: TestStack

    /// The figures of one turn.
    private struct Turn: Sendable {
        var signIns = Window(seconds: 1, latencies: [])
        var verifications: Window
        var refreshes: Window
    }

    func rows() async throws -> Table {
        var table = Table()
        let bench = self
        // First: later the stack has the memory of earlier hashes. What its store takes for the first row is there.
        _ = try await stack.newUser()
        table.add(try await Blocking.run { try bench.memoryRow() })
        try await makeAccounts()
        var tokens = try await newTokens(settings.windows * 2 * tokensPerTurn)
        table.add(
            Table.Row(
                what: "auth: hashes of passwords alone, one core",
                value: try await hashes(threads: 1).median, unit: "/s"))
        var (rates, syncs, alone, beside): ([Double], [Window], [Turn], [Turn]) = ([], [], [], [])
        for _ in 0..<settings.windows {
            for signsIn in [false, true] {
                let fresh = Array(tokens.suffix(tokensPerTurn))
                tokens.removeLast(fresh.count)
                if signsIn {
                    let (rate, sync) = try await hashesAlone()
                    rates.append(rate)
                    syncs.append(sync)
                }
                let turn = try await turn(fresh, signsIn: signsIn)
                if signsIn { beside.append(turn) } else { alone.append(turn) }
            }
        }
        table.add(
            "auth: append 256 bytes, sync, beside hashes alone on all cores", Window(mediansOf: syncs), "/s")
        add(rates, alone: alone, beside: beside, to: &table)
        return table
    }

    /// The hashes a second on all cores, and what a sync takes meanwhile: no refresh takes less.
    private func hashesAlone() async throws -> (rate: Double, sync: Window) {
        let end = PacedCalls.End()
        async let sync = Blocking.run { try Floors.sync(Self.refreshesPerSecond, until: end) }
        defer { end.come() }
        let rate = try await HashLoad.rate(threads: HashLoad.cores, seconds: windowSeconds)
        end.come()
        return (rate, try await sync)
    }

    private func add(_ rates: [Double], alone: [Turn], beside: [Turn], to table: inout Table) {
        table.add(
            Table.Row(
                what: "auth: hashes of passwords alone, \(HashLoad.cores) cores", value: rates.median, unit: "/s"))
        let signIns = beside.map(\.signIns)
        var row = Table.Row(
            "auth: sign-ins, \(LoadShape(Self.clients, 1)), beside verifications and refreshes",
            Window(mediansOf: signIns), "/s", goals: [Goal(.ratio, .atLeast(0.9))])
        row.ratio = (signIns.map(\.perSecond).ratio(to: rates), "hashes alone")
        table.add(row)
        for (what, turns) in [("nothing", alone), ("sign-ins on all cores", beside)] {
            let goals = what == "nothing" ? [] : [Self.late]
            table.add(
                "auth: session.authenticate with a new token, beside \(what)",
                Window(mediansOf: turns.map(\.verifications)), "/s", goals: goals)
            table.add("auth: refreshes, beside \(what)", Window(mediansOf: turns.map(\.refreshes)), "/s", goals: goals)
        }
    }

    /// Longer than others: a sign-in takes a tenth of a second.
    private var windowSeconds: Double { settings.seconds * 2 }

    private func hashes(threads: Int) async throws -> [Double] {
        var rates: [Double] = []
        for _ in 0..<settings.windows {
            rates.append(try await HashLoad.rate(threads: threads, seconds: settings.seconds))
        }
        return rates
    }

    // MARK: Memory

    private func memoryRow() throws -> Table.Row {
        let port = stack.configuration(.auth).port
        let sockets = try (0..<Self.atOnce).map { _ in try RawSocket(port: port) }
        defer { for socket in sockets { socket.close() } }
        // The same without a hash: what connections and requests take.
        for socket in sockets { try socket.send(AuthRequests.signIn("unknown@example.com", "")) }
        for socket in sockets { try socket.readLine() }
        let watch = try MemoryWatch(stack.processIdentifier)
        for (number, socket) in sockets.enumerated() {
            try socket.send(AuthRequests.signIn("unknown\(number)@example.com", AuthRequests.password))
        }
        let checked = try sockets.count { try $0.readLine().contains(TimingBench.wrong) }
        let growth = Double(watch.growth()) / Double(1 << 20)
        let before = Figure.text(Double(watch.first >> 20))
        return Table.Row(
            what: "auth: memory beside \(before) MB, \(Figure.text(Double(Self.atOnce))) sign-ins at once, "
                + "\(checked) of them checked and the others refused",
            value: growth, unit: "MB",
            goals: [Goal(.value, .atMost(Double(HashLoad.cores * HashLoad.bytes >> 20)))])
    }

    // MARK: One turn

    /// More than a turn needs.
    private var tokensPerTurn: Int { Self.verificationsPerSecond * Int(windowSeconds * 2 + 3) }

    /// - Parameter tokens: that no service has seen.
    private func turn(_ tokens: [String], signsIn: Bool) async throws -> Turn {
        let session = try await stack.newUser()
        let (auth, messages) = (stack.configuration(.auth).port, stack.configuration(.messages).port)
        let (seconds, end) = (windowSeconds, PacedCalls.End())
        async let verifications = Blocking.run { try Self.verify(tokens, port: messages, until: end) }
        async let refreshes = Blocking.run { try Self.refresh(session, port: auth, until: end) }
        let signIns = try await Blocking.run { () -> Window? in
            defer { end.come() }
            if signsIn { return try Self.signIn(port: auth, seconds: seconds) }
            Thread.sleep(forTimeInterval: seconds)
            return nil
        }
        var turn = Turn(verifications: try await verifications, refreshes: try await refreshes)
        if let signIns { turn.signIns = signIns }
        return turn
    }

    private static func signIn(port: Int, seconds: Double) throws -> Window {
        var load = try RawLoad(
            (0..<clients).map { _ in try RawSocket(port: port) }, depth: 1,
            requests: (0..<accounts).map { AuthRequests.signIn(email($0), AuthRequests.password) }, .jsonRPC)
        defer { load.close() }
        return try load.window(seconds: seconds)
    }

    private static func verify(_ tokens: [String], port: Int, until end: PacedCalls.End) throws -> Window {
        let lines = tokens.map {
            ChatRequests.line(Session.Authenticate.method, EncodedJSON(["auth": .string($0)]).bytes)
        }
        let socket = try RawSocket(port: port)
        defer { socket.close() }
        let reader = LineReader(socket)
        return try PacedCalls.window(verificationsPerSecond, until: end) { number in
            guard number < lines.count else { throw BenchError("there are no more new tokens") }
            try socket.send(lines[number])
            try reader.result(of: Session.Authenticate.method)
        }
    }

    private static func refresh(_ session: Auth.Session, port: Int, until end: PacedCalls.End) throws -> Window {
        var client = try RefreshClient(port: port, session)
        defer { client.socket.close() }
        let reader = LineReader(client.socket)
        return try PacedCalls.window(refreshesPerSecond, until: end) { _ in
            try client.socket.send(client.request)
            try reader.result(of: Auth.Refresh.method).withUnsafeBytes { try client.take($0) }
        }
    }

    // MARK: Setting up

    static func email(_ number: Int) -> String { "masuo\(number)@example.com" }

    private func makeAccounts() async throws {
        let client = stack.client(.auth, as: .administrator)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<Self.accounts {
                group.addTask {
                    var request = Auth.Users.Create()
                    request.email = Self.email(number)
                    request.password = AuthRequests.password
                    _ = try await client.call(request)
                }
            }
            try await group.waitForAll()
        }
        await client.close()
    }

    private func newTokens(_ count: Int) async throws -> [String] {
        var sessions: [Auth.Session] = []
        for _ in 0..<32 { sessions.append(try await stack.newUser()) }
        let (port, begun) = (stack.configuration(.auth).port, sessions)
        return try await Blocking.run {
            var load = try RefreshLoad(port: port, begun, keepsIDTokens: true)
            defer { load.close() }
            while load.idTokens.count < count { _ = try load.window(seconds: 0.5) }
            return load.idTokens
        }
    }
}

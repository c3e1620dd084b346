import HatoModel
import HatoTesting

/// Very many deliveries that wait for a provider: memory, sends beside them, and the first delivery after a start.
struct WaitingBench: Sendable {
    private static let sendsPerSecond = 100
    private static let users = PushStack.Users(name: "waiting", count: 1_000, devices: 10)
    private static let quick = PushStack.Users(name: "quick", count: 1_000)
    private static let memoryMax = 300.0

    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let (sinks, folder) = (try PushSinks(), DataFolder())
        defer {
            sinks.stop()
            folder.remove()
        }
        let arguments = folder.setting + (try sinks.settings()) + ["--pending-max", "\(settings.waiting * 2)"]
        let stack = try await TestStack.start(arguments)
        let empty: [Window]
        do {
            let filled = try await Blocking.run { try filledRows(stack) }
            (table.rows, empty) = (table.rows + filled.table.rows, filled.empty)
        } catch {
            await stack.kill()
            throw error
        }
        await stack.kill()
        for row in try await startedRows(arguments, sinks, empty) { table.add(row) }
    }

    private var waiting: String { "\(Figure.text(Double(settings.waiting))) deliveries that wait" }

    // MARK: Filling

    private func filledRows(_ stack: TestStack) throws -> (table: Table, empty: [Window]) {
        var table = Table()
        let pushes = try PushStack(stack)
        try pushes.register(Self.quick, at: .apns(app: PushSinks.app))
        try pushes.register(Self.users, at: .apns(app: PushSinks.silentApp))
        _ = try sends(pushes, seconds: 1)
        let empty = try (0..<settings.windows).map { _ in try sends(pushes, seconds: settings.seconds) }
        try pushes.settle()
        let before = try ResidentMemory.bytes(of: stack.processIdentifier)
        let start = Clock.now()
        let perMessage = Self.users.count * Self.users.devices
        let messages = (settings.waiting + perMessage - 1) / perMessage
        for number in 0..<messages { _ = try pushes.send(number, to: Self.users) }
        try pushes.wait(until: settings.waiting)
        let rate = Double(messages * perMessage) / (Double(Clock.now() - start) / 1e9)
        table.add(Table.Row(what: "push: \(waiting), accepted and made", value: rate, unit: "deliveries/s"))
        let full = try (0..<settings.windows).map { _ in try sends(pushes, seconds: settings.seconds) }
        guard try pushes.pending() >= settings.waiting else { throw BenchError("not so many deliveries wait any more") }
        table.add("\(Self.sends), an empty outbox", Window(mediansOf: empty), "/s")
        table.add(sendsRow("beside \(waiting), just filled", full, empty))
        let beside = Figure.text(Double(before >> 20))
        table.add(
            try memoryRow("push: memory of the stack (\(beside) MB before), filled with \(waiting)", stack))
        return (table, empty)
    }

    private static let sends = "push: sends, \(sendsPerSecond)/s"

    private func sendsRow(_ what: String, _ full: [Window], _ empty: [Window]) -> Table.Row {
        var row = Table.Row(
            "\(Self.sends), \(what)", Window(mediansOf: full), "/s", goals: [Goal(.ratio, .atMost(2))])
        row.ratio = (full.map(\.p99).ratio(to: empty.map(\.p99)), "the p99 of an empty outbox")
        return row
    }

    /// The delay of each response counts from the moment the send was due.
    private func sends(_ pushes: PushStack, seconds: Double) throws -> Window {
        let socket = try pushes.newSocket()
        defer { socket.close() }
        let (reader, end) = (LineReader(socket), PacedCalls.End())
        let count = max(1, Int(seconds * Double(Self.sendsPerSecond)))
        return try PacedCalls.window(Self.sendsPerSecond, until: end) { number in
            try socket.send(PushStack.line(number, to: [Self.quick.uid(number)]))
            try reader.result(of: Notifier.Send.method)
            if number + 1 >= count { end.come() }
        }
    }

    private func memoryRow(_ what: String, _ stack: TestStack) throws -> Table.Row {
        let megabytes = Double(try ResidentMemory.bytes(of: stack.processIdentifier)) / Double(1 << 20)
        return Table.Row(what: what, value: megabytes, unit: "MB", goals: [Goal(.value, .atMost(Self.memoryMax))])
    }

    // MARK: Starting

    private func startedRows(
        _ arguments: [String], _ sinks: PushSinks, _ empty: [Window]
    ) async throws -> [Table.Row] {
        let stack = try await start(arguments)
        let beside: [Table.Row]
        do {
            beside = try await Blocking.run {
                let pushes = try PushStack(stack)
                let full = try (0..<settings.windows).map { _ in try sends(pushes, seconds: settings.seconds) }
                return [
                    sendsRow("beside \(waiting), after a start", full, empty),
                    try memoryRow("push: memory of the stack, started with \(waiting)", stack),
                ]
            }
        } catch {
            await stack.kill()
            throw error
        }
        await stack.kill()
        try sinks.silent.respond()
        var firsts: [Double] = []
        for _ in 0..<settings.windows {
            try sinks.silent.clear()
            let begin = Clock.now()
            let stack = try await start(arguments)
            do {
                let first = try await Blocking.run { try sinks.silent.count(atLeast: 1).last }
                firsts.append(Double(first - begin) / 1e9)
            } catch {
                await stack.kill()
                throw error
            }
            // Most still wait at the next start.
            await stack.kill()
        }
        Progress.say("  the first deliveries: \(firsts.map(Figure.text).joined(separator: ", ")) s")
        let first = Table.Row(
            what: "push: the first delivery after a start with \(waiting)", value: firsts.median, unit: "s",
            goals: [Goal(.value, .atMost(5))])
        return beside + [first]
    }

    private func start(_ arguments: [String]) async throws -> TestStack {
        try await TestStack.start(arguments, within: .seconds(300))
    }
}

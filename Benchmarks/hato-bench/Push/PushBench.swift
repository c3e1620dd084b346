import Foundation
import HatoRPC
import HatoTesting

/// Pushes to sinks that are processes of their own: what is accepted, what is delivered, and how late it arrives.
struct PushBench: Sendable {
    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let sinks = try PushSinks()
        defer { sinks.stop() }
        let settings = settings
        try await onStack(sinks, &table) { try AcceptedBench(settings: settings, pushes: $0, sinks: sinks).rows() }
        try await onStack(sinks, &table) { try DeliveredBench(settings: settings, pushes: $0, sinks: sinks).rows() }
        try await onStack(sinks, &table) { try WebhookBench(settings: settings, pushes: $0, sinks: sinks).rows() }
        try await onStack(sinks, &table) { try TriggerBench(settings: settings, pushes: $0, sinks: sinks).rows() }
        try await onStack(sinks, &table) { try SilentBench(settings: settings, pushes: $0, sinks: sinks).rows() }
    }

    /// Each has a stack of its own, on which nothing else is delivered.
    private func onStack(
        _ sinks: PushSinks, _ table: inout Table, _ body: @escaping @Sendable (PushStack) throws -> Table
    ) async throws {
        table.rows += try await TestStack.run(try sinks.settings()) { stack in
            try await Blocking.run { try body(PushStack(stack)) }
        }.rows
    }
}

/// The sinks of a run: one of APNs that responds at once, one that never does, and one of webhooks.
struct PushSinks: Sendable {
    static let app = "default"
    /// The app whose provider does not respond.
    static let silentApp = "silent"

    let folder: PushFolder
    let apns: Sink
    let silent: Sink
    let webhooks: Sink

    init() throws {
        folder = try PushFolder()
        do {
            apns = try Sink(.apns(folder))
            silent = try Sink(.apns(folder))
            webhooks = try Sink(.webhooks)
            try silent.silence()
        } catch {
            folder.remove()
            throw error
        }
    }

    /// The settings of a stack: its apps, and no pace, which would hold back what is measured.
    func settings() throws -> [String] {
        try folder.apps([Self.app: apns.port, Self.silentApp: silent.port])
            + ["--device-interval-ms", "0", "--user-interval-ms", "0"]
    }

    func stop() {
        for sink in [apns, silent, webhooks] { sink.stop() }
        folder.remove()
    }
}

// MARK: Accepting

/// `notifier.send` of 64 clients, each with a message to one device; in turn with them Redis' XADD of 200 bytes, synced
/// before its response.
struct AcceptedBench {
    private static let shape = LoadShape(64, 1)
    private static let goal = Goal(.value, .atLeast(10_000))

    var settings: BenchSettings
    var pushes: PushStack
    var sinks: PushSinks

    func rows() throws -> Table {
        var table = Table()
        let delivered = PushStack.Users(name: "delivered", count: 1_000)
        try pushes.register(delivered, at: .apns(app: PushSinks.app))
        var load = try load(to: delivered)
        table.add("push: sends accepted, \(Self.shape), delivered meanwhile", try load.windows(settings), "sends/s")
        load.close()
        try pushes.settle()
        // The same rows become durable, and no delivery takes time from them.
        let waiting = PushStack.Users(name: "waiting", count: 1_000)
        try pushes.register(waiting, at: .apns(app: PushSinks.silentApp))
        for row in try inTurn(waiting) { table.add(row) }
        return table
    }

    private func load(to users: PushStack.Users) throws -> RawLoad {
        try RawLoad(
            at: pushes.stack.configuration(.notifier).port, as: pushes.stack.administratorKey, Self.shape,
            requests: (0..<4_096).map { PushStack.line($0, to: [users.uid($0)]) })
    }

    private func inTurn(_ users: PushStack.Users) throws -> [Table.Row] {
        let server = try RedisServer.start()
        defer { server?.stop() }
        var redis = try server.map { try RedisLoad($0, Self.shape) }
        defer { redis?.close() }
        var ours = try load(to: users)
        defer { ours.close() }
        try ours.warmUp()
        try redis?.warmUp()
        var windows: [Window] = []
        for _ in 0..<settings.windows {
            try redis?.measure(seconds: settings.seconds)
            windows.append(try ours.window(seconds: settings.seconds))
        }
        var row = Table.Row(
            "push: sends accepted, \(Self.shape), the provider does not respond", Window(mediansOf: windows), "sends/s",
            goals: [Self.goal])
        guard let redis else { return [row] }
        row.ratio = (windows.map(\.perSecond).ratio(to: redis.windows.map(\.perSecond)), "Redis")
        return [redis.row, row]
    }
}

// MARK: Delivering

/// Messages to many devices, accepted and delivered to APNs; in turn with them h2load and aioapns, which send the same
/// body to the same sink.
struct DeliveredBench {
    private static let perCore = Goal(.value, .atLeast(5_000))
    private static let usersMax = 1_000
    private static let messages = 2
    /// Of each program at a time, as many as the notifier has attempts at one provider.
    private static let streams = 500

    var settings: BenchSettings
    var pushes: PushStack
    var sinks: PushSinks

    private struct Turns {
        var own: [DeliveryRate] = []
        var h2load: [DeliveryRate] = []
        var aioapns: [DeliveryRate] = []
    }

    func rows() throws -> Table {
        var table = Table()
        let users = PushStack.Users(
            name: "many", count: min(Self.usersMax, max(1, settings.devices / 10)), devices: 10)
        try pushes.register(users, at: .apns(app: PushSinks.app))
        let load = DeliveryLoad(pushes: pushes, sink: sinks.apns)
        _ = try load.toAll(users, messages: 1)
        let others = OtherPushers(
            folder: sinks.folder, port: sinks.apns.port,
            body: try sinks.folder.file("body.json", try sinks.apns.body()))
        let python = OtherPushers.python()
        var turns = Turns()
        for _ in 0..<settings.windows {
            turns.own.append(try load.toAll(users, messages: Self.messages))
            let count = users.count * users.devices * Self.messages
            if let rate = try others.h2load(count, streams: Self.streams) { turns.h2load.append(rate) }
            if let python {
                turns.aioapns.append(try others.aioapns(python, max(1, count / 4), streams: Self.streams))
            }
        }
        add(turns, to: "\(Figure.text(Double(users.count * users.devices))) devices", &table)
        let rates = try (0..<settings.windows).map { _ in try load.toEach(users, messages: users.count) }
        table.add(
            Table.Row(
                what: "push: APNs, messages to 10 devices, for each core", value: rates.map(\.perCore).median,
                unit: "deliveries/s"))
        let one = PushStack.Users(name: "one", count: 1_000)
        try pushes.register(one, at: .apns(app: PushSinks.app))
        let single = try (0..<settings.windows).map { _ in try load.toEach(one, messages: settings.devices) }
        table.add(
            Table.Row(
                what: "push: APNs, messages to one device, for each core", value: single.map(\.perCore).median,
                unit: "deliveries/s"))
        let windows = try (0..<settings.windows).map { _ in try load.oneAtATime(one, seconds: settings.seconds) }
        table.add("push: APNs, one at a time, accepted to arrived", Window(mediansOf: windows), "/s")
        return table
    }

    private func add(_ turns: Turns, to devices: String, _ table: inout Table) {
        table.add(
            Table.Row(
                what: "push: a message to \(devices), accepted", value: turns.own.flatMap(\.accepted).median, unit: "s",
                goals: [Goal(.value, .atMost(1))]))
        add("h2load", turns.h2load, to: &table)
        add("aioapns", turns.aioapns, to: &table)
        var row = Table.Row(
            what: "push: APNs, messages to \(devices), for each core", value: turns.own.map(\.perCore).median,
            unit: "deliveries/s", goals: [Self.perCore])
        if !turns.aioapns.isEmpty {
            row.ratio = (turns.own.map(\.perCore).ratio(to: turns.aioapns.map(\.perCore)), "aioapns")
            row.goals.append(Goal(.ratio, .atLeast(5)))
        }
        table.add(row)
        table.add(
            Table.Row(
                what: "push: APNs, messages to \(devices)", value: turns.own.map(\.perSecond).median,
                unit: "deliveries/s"))
    }

    private func add(_ program: String, _ rates: [DeliveryRate], to table: inout Table) {
        guard !rates.isEmpty else {
            return table.add(Table.Row(what: "push: \(program) is not installed", value: 0, unit: "/s"))
        }
        let wall = Figure.text(rates.map(\.perSecond).median)
        table.add(
            Table.Row(
                what: "push: \(program) to the same sink (\(wall)/s), for each core",
                value: rates.map(\.perCore).median, unit: "/s"))
    }
}

/// Messages to webhooks on this machine.
struct WebhookBench {
    var settings: BenchSettings
    var pushes: PushStack
    var sinks: PushSinks

    func rows() throws -> Table {
        var table = Table()
        let users = PushStack.Users(name: "hook", count: min(1_000, settings.devices))
        try pushes.register(users, at: .webhook(port: sinks.webhooks.port))
        let load = DeliveryLoad(pushes: pushes, sink: sinks.webhooks)
        _ = try load.toAll(users, messages: 1)
        let messages = max(1, settings.devices / users.count)
        let rates = try (0..<settings.windows).map { _ in try load.toAll(users, messages: messages) }
        let what = "push: webhooks, messages to \(Figure.text(Double(users.count))) devices"
        table.add(
            Table.Row(
                what: "\(what), for each core", value: rates.map(\.perCore).median, unit: "deliveries/s",
                goals: [Goal(.value, .atLeast(5_000))]))
        table.add(Table.Row(what: what, value: rates.map(\.perSecond).median, unit: "deliveries/s"))
        let windows = try (0..<settings.windows).map { _ in try load.oneAtATime(users, seconds: settings.seconds) }
        table.add(
            "push: webhooks, one at a time, accepted to arrived", Window(mediansOf: windows), "/s",
            goals: [Goal(.p50, .atMost(2_000))])
        return table
    }
}

import HatoModel
import HatoRPC
import HatoTesting

/// Writes at a steady pace, each of which fires a trigger with one recipient: from the write to the provider's socket.
/// The delay counts from the moment the write was due, so it contains the write's own commit.
struct TriggerBench {
    private static let writesPerSecond = 500

    var settings: BenchSettings
    var pushes: PushStack
    var sinks: PushSinks

    func rows() throws -> Table {
        var table = Table()
        let users = PushStack.Users(name: "reader", count: 1_000)
        try pushes.register(users, at: .apns(app: PushSinks.app))
        try pushes.call(
            Notifier.Triggers.Set.method,
            EncodedJSON([
                "id": "bench", "pattern": "/bench/{id}", "on": ["created"], "recipients": ["uidField": "after.to"],
                "notification": ["title": "{after.senderName}さんからのメッセージ", "body": "{after.text}"],
                "data": [SinkLog.numberName: "{after.number}"],
            ]))
        let socket = try pushes.newSocket(.messages)
        defer { socket.close() }
        var windows: [Window] = []
        // The first one warms up.
        for window in 0...settings.windows {
            let paced = PacedPushes(
                perSecond: Self.writesPerSecond, method: Messages.Set.method,
                line: { Self.write($0, of: window, to: users.uid($0)) }, sink: sinks.apns)
            windows.append(try paced.window(socket, seconds: window == 0 ? 1 : settings.seconds))
        }
        table.add(
            "push: trigger, \(Self.writesPerSecond) writes/s, due to arrived",
            Window(mediansOf: Array(windows.dropFirst())),
            "/s", goals: [Goal(.p99, .atMost(50_000))])
        return table
    }

    private static func write(_ number: Int, of window: Int, to uid: String) -> [UInt8] {
        let value: JSONValue = [
            "to": .string(uid), "number": .string(String(number)), "senderName": "マスオさん",
            "text": .string("Message \(number): いま帰る いま帰る いま帰る"),
        ]
        let params: JSONValue = ["path": .string("/bench/w\(window)-\(number)"), "value": value]
        return ChatRequests.line(Messages.Set.method, params.encoded)
    }
}

/// Sends to one app at a steady pace, before and while the provider of another app does not respond.
struct SilentBench {
    private static let sendsPerSecond = 100
    /// More than the notifier attempts at a time.
    private static let silentSends = 2_000

    var settings: BenchSettings
    var pushes: PushStack
    var sinks: PushSinks

    func rows() throws -> Table {
        var table = Table()
        let users = PushStack.Users(name: "quick", count: 1_000)
        try pushes.register(users, at: .apns(app: PushSinks.app))
        let silent = PushStack.Users(name: "silent", count: 1_000)
        try pushes.register(silent, at: .apns(app: PushSinks.silentApp))
        let socket = try pushes.newSocket()
        defer { socket.close() }
        let paced = PacedPushes(
            perSecond: Self.sendsPerSecond, method: Notifier.Send.method,
            line: { PushStack.line($0, to: [users.uid($0)]) }, sink: sinks.apns)
        _ = try paced.window(socket, seconds: 1)
        let alone = try (0..<settings.windows).map { _ in try paced.window(socket, seconds: settings.seconds) }
        try sinks.silent.clear()
        var beside: [Window] = []
        for _ in 0..<settings.windows {
            try pushes.sendEach(Self.silentSends, to: silent)
            // One request is made until the provider has responded to it.
            try sinks.silent.count(atLeast: 1)
            beside.append(try paced.window(socket, seconds: settings.seconds))
        }
        let what = "push: APNs, \(Self.sendsPerSecond) sends/s, due to arrived"
        table.add("\(what), alone", Window(mediansOf: alone), "/s")
        var row = Table.Row(
            "\(what), another app's provider does not respond", Window(mediansOf: beside), "/s",
            goals: [Goal(.ratio, .atMost(1.5))])
        row.ratio = (beside.map(\.p99).ratio(to: alone.map(\.p99)), "the p99 alone")
        table.add(row)
        return table
    }
}

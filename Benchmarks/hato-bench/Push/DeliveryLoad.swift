import Foundation

enum Pause {
    static func milliseconds(_ count: Int) { Thread.sleep(forTimeInterval: Double(count) / 1_000) }
}

/// Deliveries of one window.
struct DeliveryRate: Sendable {
    /// For each second of the processor time of the notifier: accepting, delivering and recording.
    var perCore: Double
    /// For each second, until the last one arrived.
    var perSecond: Double
    /// Seconds until a message was accepted.
    var accepted: [Double] = []
}

/// Sends messages and waits until all their pushes have arrived and are recorded.
struct DeliveryLoad {
    var pushes: PushStack
    var sink: Sink

    /// Messages to all devices of the users.
    func toAll(_ users: PushStack.Users, messages: Int) throws -> DeliveryRate {
        var accepted: [Double] = []
        var rate = try measured(messages * users.count * users.devices) {
            for number in 0..<messages { accepted.append(try pushes.send(number, to: users)) }
        }
        rate.accepted = accepted
        return rate
    }

    /// Messages to one user each.
    func toEach(_ users: PushStack.Users, messages: Int) throws -> DeliveryRate {
        try measured(messages * users.devices) { try pushes.sendEach(messages, to: users) }
    }

    private func measured(_ count: Int, _ body: () throws -> Void) throws -> DeliveryRate {
        try sink.clear()
        let (used, start) = (try pushes.processorTime(), Clock.now())
        try body()
        let last = try sink.count(atLeast: count).last
        try pushes.settle()
        let seconds = Double(last - start) / 1e9
        return DeliveryRate(
            perCore: Double(count) / (try pushes.processorTime() - used), perSecond: Double(count) / seconds)
    }

    /// One message at a time, each when the one before has arrived: microseconds from the response of `notifier.send`
    /// to the arrival; 0 when it arrived before.
    func oneAtATime(_ users: PushStack.Users, seconds: Double) throws -> Window {
        let socket = try pushes.newSocket()
        defer { socket.close() }
        let reader = LineReader(socket)
        try sink.clear()
        var accepted: [UInt64] = []
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        while Clock.now() < end {
            try socket.send(PushStack.line(accepted.count, to: [users.uid(accepted.count)]))
            try reader.result(of: "notifier.send")
            accepted.append(Clock.now())
            try sink.count(atLeast: accepted.count)
        }
        let took = Double(Clock.now() - start) / 1e9
        try pushes.settle()
        return Window(seconds: took, latencies: Self.latencies(accepted, try sink.arrivals(accepted.count)))
    }

    static func latencies(_ from: [UInt64], _ arrivals: [UInt64]) -> [UInt32] {
        zip(from, arrivals).map { UInt32(clamping: ($1 - min($0, $1)) / 1_000) }
    }
}

/// Requests at a steady pace, each of which makes one push; the delay of a push counts from the moment its request was
/// due.
struct PacedPushes {
    var perSecond: Int
    var method: String
    /// The line of a request with this number.
    var line: (Int) -> [UInt8]
    var sink: Sink

    /// - Parameter socket: to the service of the method.
    func window(_ socket: RawSocket, seconds: Double) throws -> Window {
        try sink.clear()
        let interval = UInt64(1_000_000_000 / perSecond)
        let lines = (0..<max(1, Int(seconds * Double(perSecond)))).map(line)
        var calls = PipelinedCalls(socket, method, inFlightMax: 1_000)
        let start = Clock.now()
        var due: [UInt64] = []
        for (number, line) in lines.enumerated() {
            due.append(start + UInt64(number) * interval)
            let now = Clock.now()
            if due[number] > now { Thread.sleep(forTimeInterval: Double(due[number] - now) / 1e9) }
            try calls.send(line)
        }
        try calls.finish()
        let last = try sink.count(atLeast: lines.count).last
        return Window(
            seconds: Double(last - start) / 1e9, latencies: DeliveryLoad.latencies(due, try sink.arrivals(lines.count)))
    }
}

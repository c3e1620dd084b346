import HatoModel
import HatoRPC
import HatoTesting

/// A stack that pushes to sinks, with calls of the administrator on one connection.
///
/// The notifier is part of `hato-dev`, so its processor time is that of all three services; the others do nothing
/// while pushes are sent, and apply each write of a trigger.
final class PushStack {
    /// What the devices of users are.
    enum Address {
        /// Of the app.
        case apns(app: String)
        /// A port of this machine.
        case webhook(port: Int)
    }

    /// Users of the same kind, each with so many devices.
    struct Users {
        var name: String
        var count: Int
        var devices = 1

        func uid(_ number: Int) -> String { "\(name)\(number % count)" }
    }

    /// As many calls wait for a response.
    private static let inFlightMax = 64

    let stack: TestStack
    private let socket: RawSocket
    private let reader: LineReader

    init(_ stack: TestStack) throws {
        self.stack = stack
        socket = try RawSocket(port: stack.configuration(.notifier).port, signedInWith: stack.administratorKey)
        reader = LineReader(socket)
    }

    deinit { socket.close() }

    /// Another connection of the administrator.
    func newSocket(_ service: TestStack.Service = .notifier) throws -> RawSocket {
        try RawSocket(port: stack.configuration(service).port, signedInWith: stack.administratorKey)
    }

    @discardableResult
    func call(_ method: String, _ params: EncodedJSON) throws -> [UInt8] {
        try socket.send(ChatRequests.line(method, params.bytes))
        return try reader.result(of: method)
    }

    // MARK: Devices

    func register(_ users: Users, at address: Address) throws {
        let socket = try newSocket()
        defer { socket.close() }
        var calls = PipelinedCalls(socket, Notifier.Devices.Register.method, inFlightMax: Self.inFlightMax)
        for number in 0..<users.count * users.devices {
            var params: JSONObject = ["uid": .string(users.uid(number))]
            switch address {
            case .apns(let app):
                (params["platform"], params["app"]) = ("apns", .string(app))
                params["token"] = .string(Self.token(users.name, number))
            case .webhook(let port):
                params["platform"] = "webhook"
                params["url"] = .string("http://127.0.0.1:\(port)/\(users.name)/\(number)")
            }
            try calls.send(ChatRequests.line(Notifier.Devices.Register.method, JSONValue.object(params).encoded))
        }
        try calls.finish()
    }

    /// 64 hexadecimal digits.
    private static func token(_ name: String, _ number: Int) -> String {
        let digits = name.utf8.map { String($0, radix: 16) }.joined() + String(number, radix: 16)
        return String(repeating: "0", count: max(0, 64 - digits.count)) + digits
    }

    // MARK: Messages

    /// The line of a push with this number, with the text of a chat.
    static func line(_ number: Int, to uids: [String]) -> [UInt8] {
        ChatRequests.line(Notifier.Send.method, message(number, to: uids).bytes, id: RequestID.first)
    }

    private static func message(_ number: Int, to uids: [String]) -> EncodedJSON {
        EncodedJSON([
            "to": ["uids": .array(uids.map { .string($0) })],
            "notification": ["title": "マスオさん", "body": .string("Message \(number): いま帰る いま帰る いま帰る")],
            "data": [SinkLog.numberName: .string(String(number))],
        ])
    }

    /// Sends one message to all; returns the seconds until it was accepted.
    func send(_ number: Int, to users: Users) throws -> Double {
        let params = Self.message(number, to: (0..<users.count).map { users.uid($0) })
        let start = Clock.now()
        let line = String(decoding: try call(Notifier.Send.method, params), as: UTF8.self)
        let seconds = Double(Clock.now() - start) / 1e9
        // The deliveries of a large notification are made in pages; its recipients are the users.
        let wanted = line.contains("\"fanOut\":true") ? users.count : users.count * users.devices
        guard line.contains("\"recipients\":\(wanted)") else { throw BenchError("not to \(wanted) of them: \(line)") }
        return seconds
    }

    /// Sends messages to one user each, whatever the state of earlier ones; returns when all are accepted.
    func sendEach(_ count: Int, to users: Users) throws {
        let socket = try newSocket()
        defer { socket.close() }
        var calls = PipelinedCalls(socket, Notifier.Send.method, inFlightMax: Self.inFlightMax)
        for number in 0..<count { try calls.send(Self.line(number, to: [users.uid(number)])) }
        try calls.finish()
    }

    // MARK: State

    /// Deliveries that have not ended.
    func pending() throws -> Int {
        let line = try JSONParser.parse(try call(Notifier.Stats.method, EncodedJSON("{}")))
        guard let pending = line.object?["result"]?.object?["pending"]?.number else {
            throw BenchError("notifier.stats gives no pending")
        }
        return Int(pending)
    }

    /// Returns when every delivery has ended, which is after its response arrived.
    func settle(within seconds: Double = 300) throws {
        let end = Clock.now() + UInt64(seconds * 1e9)
        while try pending() > 0 {
            guard Clock.now() < end else { throw BenchError("\(try pending()) deliveries have not ended") }
            Pause.milliseconds(10)
        }
    }

    /// Returns when at least so many deliveries wait: those of a message to many devices are made after its response.
    func wait(until count: Int, within seconds: Double = 900) throws {
        let end = Clock.now() + UInt64(seconds * 1e9)
        while true {
            let pending = try pending()
            if pending >= count { return }
            guard Clock.now() < end else { throw BenchError("only \(pending) deliveries wait") }
            Pause.milliseconds(100)
        }
    }

    func processorTime() throws -> Double { try CPUTime.seconds(of: stack.processIdentifier) }
}

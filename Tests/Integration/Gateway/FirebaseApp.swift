import HatoModel
import HatoRPC
import HatoTesting

/// An app with Firebase's SDK, as its socket shows it: each call waits for the response, pushes wait until they are
/// taken.
struct FirebaseApp {
    /// A push of the server.
    struct Push: Equatable {
        var path: String
        var value: JSONValue
        var tag: Int64?
    }

    /// That of the hello, in milliseconds since 1970.
    let helloTime: Int64
    private let socket: FirebaseSocket
    private var lastNumber = 0
    private var pushes: [Push] = []

    init(_ stack: GatewayStack, target: String = "/.ws?v=5&ns=hato") throws {
        socket = try FirebaseSocket(stack, target: target)
        guard let time = try socket.message()?["d"]?["d"]?["ts"]?.integer else { throw DeadlineExceeded("a hello") }
        helloTime = time
    }

    /// Ends the connection without a word.
    func cut() { socket.cut() }

    mutating func signIn(_ account: (uid: String, token: String)) throws {
        _ = try request("auth", ["cred": .string(account.token)])
    }

    /// Listens and returns the first value.
    mutating func observe(_ path: String, query: JSONValue? = nil, tag: Int64 = 0) throws -> JSONValue {
        var body: JSONObject = ["p": .string("/\(path)"), "h": ""]
        if let query {
            body["q"] = query
            body["t"] = .number(Double(tag))
        }
        let count = pushes.count
        _ = try request("q", body)
        guard pushes.count > count else { throw DeadlineExceeded("a first value of \(path)") }
        return pushes.remove(at: count).value
    }

    mutating func get(_ path: String) throws -> JSONValue { try request("g", ["p": .string("/\(path)"), "q": [:]]) }

    mutating func setValue(_ path: String, _ value: JSONValue) throws {
        _ = try request("p", ["p": .string("/\(path)"), "d": value])
    }

    mutating func onDisconnect(_ path: String, _ value: JSONValue) throws {
        _ = try request("o", ["p": .string("/\(path)"), "d": value])
    }

    /// A key of `childByAutoId`, which clients make.
    func pushKey() -> String {
        PushKey(milliseconds: helloTime, random: (.random(in: 0...UInt64.max), .random(in: 0...UInt64.max))).text
    }

    /// The next push, which may be there already.
    mutating func nextPush() throws -> Push {
        while pushes.isEmpty { try take(nextMessage()) }
        return pushes.removeFirst()
    }

    private mutating func request(_ action: String, _ body: JSONObject) throws -> JSONValue {
        lastNumber += 1
        let number = JSONValue.number(Double(lastNumber))
        let message: JSONValue = ["t": "d", "d": ["r": number, "a": .string(action), "b": .object(body)]]
        try socket.send(EncodedJSON(message).text)
        while true {
            let received = try nextMessage()
            guard received["r"] == number else {
                take(received)
                continue
            }
            guard received["b"]?["s"] == "ok" else {
                throw DeadlineExceeded("\(action) succeeds: \(EncodedJSON(received).text)")
            }
            return received["b"]?["d"] ?? .null
        }
    }

    private func nextMessage() throws -> JSONValue {
        guard let message = try socket.message()?["d"] else { throw DeadlineExceeded("the socket is open") }
        return message
    }

    private mutating func take(_ message: JSONValue) {
        let body = message["b"]
        pushes.append(
            Push(path: body?["p"]?.string ?? "", value: body?["d"] ?? .null, tag: body?["t"]?.integer))
    }
}

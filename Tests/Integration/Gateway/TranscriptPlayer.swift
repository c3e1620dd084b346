import HatoModel
import HatoRPC
import HatoTesting

/// Plays the steps of a transcript (`GatewayTranscripts`). Throws what a step finds wrong.
struct TranscriptPlayer {
    private let stack: GatewayStack
    private var sockets: [String: FirebaseSocket] = [:]
    /// The ids of the newest sessions, by the names of their sockets.
    private var sessions: [String: String] = [:]
    private var accounts: [String: Account] = [:]

    private struct Account {
        var uid: String
        var token: String
        var refreshToken: String

        init(_ result: JSONValue) throws {
            guard let uid = result["uid"]?.string, let token = result["idToken"]?.string,
                let refreshToken = result["refreshToken"]?.string
            else { throw DeadlineExceeded("a session: \(EncodedJSON(result).text)") }
            (self.uid, self.token, self.refreshToken) = (uid, token, refreshToken)
        }
    }

    init(_ stack: GatewayStack) { self.stack = stack }

    mutating func play(_ step: JSONValue) throws {
        if let request = step["request"]?.string {
            try self.request(request, step)
        } else if let rules = step["rules"] {
            try call("messages.rules.set", ["rules": .string(EncodedJSON(rules).text)])
        } else if let method = step["call"]?.string {
            try call(method, try JSONParser.parse(try filled(step["params"] ?? [:])).object ?? [:])
        } else if let name = step["renew"]?.string {
            let token = try account(name).refreshToken
            accounts[name] = try Account(native("auth.refresh", ["refreshToken": .string(token)]))
        } else if let name = step["restart"]?.string {
            try restart(name, killing: false)
        } else if let name = step["kill"]?.string {
            try restart(name, killing: true)
        } else {
            try playOnSocket(step)
        }
    }

    // MARK: Sockets

    private mutating func playOnSocket(_ step: JSONValue) throws {
        let name = step["socket"]?.string ?? "a"
        let socket = try sockets[name] ?? open(step)
        sockets[name] = socket
        if let frame = step["frame"]?.string { try socket.send(frame) }
        if let message = step["send"] {
            try socket.send(try filled(message), chunk: step["chunk"]?.integer.map { Int($0) } ?? .max)
        }
        if step["cut"] == true {
            socket.cut()
            sockets[name] = nil
        }
        if step["close"] == true {
            sockets[name] = nil
            try socket.send([], opcode: 0x88)
            try expect("closed", nil, of: socket)
        }
        if let expected = step["expect"] {
            if expected == "closed" { sockets[name] = nil }
            try expect(expected, step["chunks"]?.integer, of: socket)
        }
        if let expected = step["expectInAnyOrder"]?.array {
            var wanted = try expected.map { try JSONParser.parse(try filled($0)) }
            for _ in expected {
                let message = try socket.message() ?? "closed"
                guard let index = wanted.firstIndex(where: { message.fits($0) }) else {
                    throw DeadlineExceeded("\(EncodedJSON(message).text) is none of \(wanted)")
                }
                wanted.remove(at: index)
            }
        }
        if let expected = step["expectPipelined"] {
            let wanted = try JSONParser.parse(try filled(expected)).array ?? []
            try expect(pipelined: wanted.compactMap(\.array), of: socket)
        }
    }

    /// Reads, in any order but these: the pushes and the responses each in their order, a response behind its pushes.
    private func expect(pipelined expected: [[JSONValue]], of socket: FirebaseSocket) throws {
        let pushes = expected.flatMap { $0.dropLast() }
        let responses = expected.compactMap(\.last)
        var (pushed, responded) = (0, 0)
        while responded < responses.count {
            let message = try socket.message() ?? "closed"
            let due = expected[...responded].reduce(0) { $0 + $1.count - 1 }
            if pushed >= due, message.fits(responses[responded]) {
                responded += 1
            } else if pushed < pushes.count, message.fits(pushes[pushed]) {
                pushed += 1
            } else {
                let text = EncodedJSON(message).text
                throw DeadlineExceeded("\(text) after \(pushed) pushes and \(responded) responses")
            }
        }
    }

    private mutating func open(_ step: JSONValue) throws -> FirebaseSocket {
        let target = try step["open"].map { try filled($0) } ?? "\"/.ws?v=5&ns=hato\""
        let socket = try FirebaseSocket(stack, target: try JSONParser.parse(target).string ?? "")
        if step["hello"] == false { return socket }
        let expected: JSONValue = ["ts": "<any>", "v": "5", "h": "<host>", "s": "<any>"]
        let hello = try socket.message() ?? "closed"
        try check(hello, ["t": "c", "d": ["t": "h", "d": expected]])
        sessions[step["socket"]?.string ?? "a"] = hello["d"]?["d"]?["s"]?.string
        return socket
    }

    private mutating func expect(_ expected: JSONValue, _ count: Int64?, of socket: FirebaseSocket) throws {
        guard expected != "closed" else {
            // A killed program sends no close frame.
            let got: JSONValue?
            do { got = try socket.message() } catch is ConnectionEnded { return }
            guard let message = got else { return }
            throw DeadlineExceeded("the socket closes, and does not send \(EncodedJSON(message).text)")
        }
        let chunks = try socket.chunks() ?? ["\"closed\""]
        if let count, count != chunks.count { throw DeadlineExceeded("\(chunks.count) chunks instead of \(count)") }
        try check(try JSONParser.parse(chunks.joined()), expected)
    }

    private mutating func check(_ value: JSONValue, _ expected: JSONValue) throws {
        let wanted = try JSONParser.parse(try filled(expected))
        guard value.fits(wanted) else {
            let texts = [value, wanted].map { EncodedJSON($0).text.prefix(2_000) }
            throw DeadlineExceeded("\(texts[0]) instead of \(texts[1])")
        }
    }

    // MARK: Other steps

    private mutating func request(_ request: String, _ step: JSONValue) throws {
        let line = try JSONParser.parse(try filled(.string(request))).string ?? ""
        let headers = try JSONParser.parse(try filled(step["headers"] ?? [:])).object?.members ?? []
        let body = try step["body"].map { try filled($0) }
        let response = try HTTPResponseText.of(
            line, headers.map { "\($0.name): \($0.value.string ?? "")" }, body: body,
            on: try PlainSocket(stack.gateway.address))
        guard response.status == Int(step["status"]?.integer ?? 200) else {
            throw DeadlineExceeded("\(line): \(response.status) \(response.body.prefix(500))")
        }
        if let expected = step["response"] { try check(response.json ?? "no JSON", expected) }
    }

    /// An administrator's native call.
    func call(_ method: String, _ params: JSONObject) throws {
        var params = params
        params["auth"] = .string(ServingProgram.administratorKey)
        _ = try native(method, params)
    }

    private func native(_ method: String, _ params: JSONObject) throws -> JSONValue {
        let service = method.hasPrefix("auth.") ? stack.auth : stack.messages
        let socket = try PlainSocket(service.address)
        try socket.send(method, params)
        let response = try JSONParser.parse(socket.line())
        guard let result = response["result"] else {
            throw DeadlineExceeded("\(method): \(EncodedJSON(response).text)")
        }
        return result
    }

    private func restart(_ name: String, killing isKilled: Bool) throws {
        let program = ["auth": stack.auth, "messages": stack.messages, "gateway": stack.gateway][name]
        guard let program else { throw DeadlineExceeded("there is a program \(name)") }
        try Blocking.wait { try await program.restart(killing: isKilled) }
    }

    // MARK: Holes

    /// The JSON text of a value, with its holes filled.
    private mutating func filled(_ value: JSONValue) throws -> String {
        var text = EncodedJSON(value).text
        for hole in Set(text.matches(of: #/<(uid|token)(?::(\w+))?>/#).map { String($0.output.0) }) {
            let words = hole.dropFirst().dropLast().split(separator: ":")
            let account = try account(words.count > 1 ? String(words[1]) : "a")
            text = text.replacing(hole, with: words[0] == "uid" ? account.uid : account.token)
        }
        for hole in Set(text.matches(of: #/<session:\w+>/#).map { String($0.output) }) {
            let name = String(hole.dropFirst("<session:".count).dropLast())
            guard let session = sessions[name] else { throw DeadlineExceeded("a session of the socket \(name)") }
            text = text.replacing(hole, with: session)
        }
        text = text.replacing(#/<(\d+)×(.)>/#) { match in
            String(repeating: String(match.output.2), count: Int(match.output.1) ?? 0)
        }
        return text.replacing("<admin>", with: ServingProgram.administratorKey)
            .replacing("<host>", with: FirebaseSocket.host)
    }

    private mutating func account(_ name: String) throws -> Account {
        if let account = accounts[name] { return account }
        let account = try Account(native("auth.signUp", [:]))
        accounts[name] = account
        return account
    }
}

extension JSONValue {
    /// Whether it is the expected value; `"<any>"` in that stands for any.
    func fits(_ expected: JSONValue) -> Bool {
        switch (self, expected) {
        case (_, "<any>"): true
        case (.object(let mine), .object(let other)):
            mine.count == other.count && other.members.allSatisfy { mine[$0.name]?.fits($0.value) == true }
        case (.array(let mine), .array(let other)):
            mine.count == other.count && zip(mine, other).allSatisfy { $0.fits($1) }
        default: self == expected
        }
    }
}

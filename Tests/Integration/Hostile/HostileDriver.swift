import Foundation
import HatoModel
import HatoRPC

/// Sends hostile calls to one service with one identity, one at a time, and reports wrong responses.
final class HostileDriver {
    enum Role: String, CaseIterable {
        case administrator, user, nobody
    }

    /// A call that was made, for the list of the slowest.
    struct Timed {
        var seconds: Double
        var call: String
    }

    /// The deadline of one response: only a call that hangs reaches it.
    static let secondsPerCall = 60

    let role: Role
    private let address: String
    /// The address of auth, which makes the users.
    private let auth: String
    private var socket: LineSocket?
    private var calls = 0
    /// Values from results with which later params may be valid.
    private var learned: [String: JSONValue] = [:]
    private(set) var problems: [String] = []
    private(set) var slowest: [Timed] = []
    private(set) var codes: [Int: Int] = [:]
    private(set) var count = 0

    init(_ role: Role, address: String, auth: String) {
        (self.role, self.address, self.auth) = (role, address, auth)
    }

    /// The connection ends with the driver; the next call opens another one.
    func disconnect() { socket = nil }

    /// Makes the call with each site set to its value.
    ///
    /// - Throws: when the service is gone.
    func call(_ method: String, _ sample: HostileMethod.Sample, _ changes: [(HostileSite, HostileValue)]) throws {
        var params = filled(sample.params, except: changes.map(\.0))
        for (number, change) in changes.enumerated() {
            params = params.setting(change.0.steps[...], to: .string("@@\(number)@@"))
        }
        var text = EncodedJSON(params).text
        for (number, change) in changes.enumerated() {
            text = text.replacingOccurrences(of: "\"@@\(number)@@\"", with: change.1.text)
        }
        let name =
            "\(method) as \(role.rawValue): " + changes.map { "\($0.0.name) = \($0.1.name)" }.joined(separator: ", ")
        let isValid = (try? JSONParser.parse(text)) != nil
        count += 1
        let start = ContinuousClock.now
        var answer: JSONValue
        do { answer = try exchange(method, text) } catch LineSocket.Problem.closed
            where text.utf8.count > (role == .nobody ? 65_000 : 16_000_000)
        {
            // A line that is too long gets a response and closes the connection: data on its way may discard the
            // response.
            socket = nil
            return
        } catch LineSocket.Problem.cannotConnect(let reason) {
            problems.append("\(name): the service is gone: \(reason)")
            throw LineSocket.Problem.cannotConnect(reason)
        } catch {
            problems.append("\(name): \(error); \(text.prefix(300))")
            socket = nil
            return
        }
        note(ContinuousClock.now - start, name)
        if let wrong = Self.wrong(answer, with: .number(Double(calls)), isValid: isValid) {
            problems.append("\(name): \(wrong): \(EncodedJSON(answer).text.prefix(400)) to \(text.prefix(300))")
        }
        learn(answer["result"])
        codes[Int(answer["error"]?["code"]?.integer ?? 0), default: 0] += 1
        if answer["error"]?["data"]?["reason"] == "line_too_long" { socket = nil }
        if method.hasPrefix("session.") || isSignedOut(answer) { socket = nil }
    }

    /// A call whose outcome does not matter.
    func prepare(_ method: String, _ params: JSONValue) throws { _ = try exchange(method, EncodedJSON(params).text) }

    /// The result of a call that must succeed.
    func result(_ method: String) throws -> JSONValue {
        let answer = try exchange(method, "{}")
        guard let result = answer["result"] else { throw LineSocket.Problem.closed(EncodedJSON(answer).text) }
        return result
    }

    // MARK: One exchange

    private func exchange(_ method: String, _ params: String) throws -> JSONValue {
        let socket = try socket ?? connected()
        self.socket = socket
        calls += 1
        return try Self.exchange(socket, calls, method, params)
    }

    private func connected() throws -> LineSocket {
        let socket = try LineSocket(address, within: Self.secondsPerCall)
        let credential: String
        switch role {
        case .nobody: return socket
        case .administrator: credential = ServingProgram.administratorKey
        case .user:
            let signUp = try Self.exchange(LineSocket(auth, within: Self.secondsPerCall), 1, "auth.signUp", "{}")
            guard let token = signUp["result"]?["idToken"]?.string else {
                throw LineSocket.Problem.closed("no user: \(EncodedJSON(signUp).text)")
            }
            credential = token
        }
        let answer = try Self.exchange(socket, 0, "session.authenticate", "{\"auth\":\"\(credential)\"}")
        guard answer["result"] != nil else { throw LineSocket.Problem.closed(EncodedJSON(answer).text) }
        return socket
    }

    /// Sends a request and returns the first line that is no notification.
    private static func exchange(
        _ socket: LineSocket, _ id: Int, _ method: String, _ params: String
    ) throws -> JSONValue {
        try socket.send("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"\(method)\",\"params\":\(params)}")
        while true {
            let line = try JSONParser.parse(try socket.line(), depth: 80)
            if line["method"] == nil { return line }
        }
    }

    // MARK: Answers

    private static let ownCodes: ClosedRange<Int64> = -32008 ... -32001
    private static let specifiedCodes: Set<Int64> = [-32700, -32600, -32601, -32602]

    /// The fault of a response; nil if it is well-formed.
    private static func wrong(_ answer: JSONValue, with id: JSONValue, isValid: Bool) -> String? {
        guard answer["jsonrpc"] == "2.0" else { return "no JSON-RPC 2.0" }
        let isTooLong = answer["error"]?["data"]?["reason"] == "line_too_long"
        if !isValid {
            let isParseError = answer["id"] == .null && answer["error"]?["code"] == -32700
            return isParseError || isTooLong ? nil : "invalid JSON is no parse error"
        }
        guard answer["id"] == id || answer["id"] == .null && isTooLong else { return "not the response to this call" }
        guard let error = answer["error"] else { return answer["result"] == nil ? "neither result nor error" : nil }
        guard answer["result"] == nil else { return "result and error" }
        guard let code = error["code"]?.integer, ownCodes.contains(code) || specifiedCodes.contains(code) else {
            return "an error of no known kind"
        }
        guard error["message"]?.string?.isEmpty == false else { return "an error without a message" }
        guard error["data"]?["reason"]?.string?.isEmpty == false, error["data"]?["retryable"]?.bool != nil else {
            return "an error without reason or retryable"
        }
        guard code == -32602 || code == -32008 else { return nil }
        guard let parameter = error["data"]?["parameter"]?.string, !parameter.isEmpty else {
            return "an error that names no parameter"
        }
        return saysWhatIsRight(error, parameter) ? nil : "an error that does not say what is right"
    }

    /// Errors about a password or secret show no example of one.
    private static func saysWhatIsRight(_ error: JSONValue, _ parameter: String) -> Bool {
        if ["password", "newPassword", "secret"].contains(parameter) { return true }
        return error["message"]?.string?.contains("e.g. ") == true
    }

    private func isSignedOut(_ answer: JSONValue) -> Bool { role == .user && answer["error"]?["code"] == -32001 }

    // MARK: Values from results

    private static let learnable: Set<String> = [
        "epoch", "snapshot", "subscription", "device", "uid", "notification", "refreshToken", "idToken",
    ]

    private func learn(_ result: JSONValue?) {
        for member in result?.object?.members ?? []
        where Self.learnable.contains(member.name) && member.value.string != nil {
            learned[member.name] = member.value
        }
    }

    /// The params with known valid values at the places that are not to be changed.
    private func filled(_ params: JSONValue, except sites: [HostileSite]) -> JSONValue {
        guard var object = params.object else { return params }
        for member in object.members {
            guard let value = learned[member.name], member.value.string != nil else { continue }
            object[member.name] = value
        }
        if let uid = learned["uid"], object["as"]?["uid"] != nil {
            object["as"] = object["as"]?.setting([.member("uid")][...], to: uid)
        }
        return .object(object)
    }

    private func note(_ duration: Duration, _ call: String) {
        slowest.append(Timed(seconds: duration / .seconds(1), call: call))
        if slowest.count >= 400 { slowest = Self.slowest(slowest) }
    }

    static func slowest(_ calls: [Timed]) -> [Timed] { Array(calls.sorted { $0.seconds > $1.seconds }.prefix(20)) }
}

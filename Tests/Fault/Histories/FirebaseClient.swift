import Crypto
import Foundation
import HatoModel

/// A client of Firebase without its connection: what it sends for each message that it gets, and whether what it gets
/// can be right.
///
/// It signs in, listens, registers an onDisconnect write, writes to two places of its own and transacts on a counter
/// that it shares with others. Each response brings its next request, until the history is over. After a loss of its
/// connection it does what SDKs do: it listens again with the hash of what it has, sends writes without a response
/// again, and takes a transaction without a response for one of unknown outcome.
final class FirebaseClient {
    /// Places that each client writes to: the first with sets, the second with updates of several members.
    static let places = 2
    /// Clients that share a counter.
    private static let sharers = 4

    private enum Request {
        case signIn
        /// - Parameter known: the numbers that the listener must see at least, by path.
        case listen(known: [String: Int])
        case write(place: Int)
        case raise(from: Int)
        case onDisconnect
    }

    private let number: Int
    private let token: String
    private let history: SocketHistory
    /// Where another client writes.
    private let watched: String
    private let counter: String
    /// The last value of each path that it listens to, over all connections.
    private var views: [String: JSONValue]
    /// Of the newest write to each place, and whether it waits for its response.
    private var writes = [(number: Int, isWaiting: Bool)](repeating: (0, false), count: places)
    private var lastRequest = 0
    private var connections = 0
    /// Those of this connection without a response.
    private var requests: [Int: Request] = [:]
    /// How many of those that restore its state are without a response.
    private var restoring = 0

    /// - Parameter count: of all clients.
    init(_ number: Int, of count: Int, token: String, _ history: SocketHistory) {
        (self.number, self.token, self.history) = (number, token, history)
        watched = Self.path(of: (number + 1) % count)
        counter = "sums/s\(number / Self.sharers)"
        views = [watched: .null, counter: .null]
    }

    private static func path(of client: Int) -> String { "writes/c\(client)" }

    private var ownPath: String { Self.path(of: number) }

    /// The paths that it listens to.
    private var listens: [String] { [watched, counter] }

    func isDisconnected() {
        for case .raise(let value) in requests.values { history.lost(counter, to: value + 1) }
        (requests, restoring) = ([:], 0)
        history.isDisconnected(number)
    }

    /// Takes a message; returns those that the client sends then.
    func take(_ bytes: [UInt8]) -> [[UInt8]] {
        guard let message = try? JSONParser.parse(bytes), let data = message["d"] else {
            fail("gets no message", .string(String(decoding: bytes, as: UTF8.self)))
            return []
        }
        var sent: [JSONValue] = []
        if message["t"] == "c" {
            if data["t"] == "h" { sent = restore() } else { fail("gets", message) }
        } else if let request = data["r"]?.integer {
            sent = respond(to: Int(request), data["b"]?["s"]?.string ?? "")
        } else {
            see(data)
        }
        history.report(number, views, isQuiet: requests.isEmpty)
        return sent.map(\.encoded)
    }

    private func fail(_ what: String, _ message: JSONValue) {
        history.fail("client \(number) \(what): \(String(decoding: message.encoded, as: UTF8.self))")
    }

    private func request(_ action: String, _ request: Request, _ body: JSONValue) -> JSONValue {
        lastRequest += 1
        requests[lastRequest] = request
        return ["t": "d", "d": ["r": .number(Double(lastRequest)), "a": .string(action), "b": body]]
    }

    // MARK: A new connection

    private func restore() -> [JSONValue] {
        connections += 1
        var sent = [request("auth", .signIn, ["cred": .string(token)])]
        for path in listens {
            let hash = Self.hash(of: views[path] ?? .null)
            let listen = Request.listen(known: history.acknowledged(numberPaths(of: path)))
            sent.append(request("q", listen, ["p": .string("/\(path)"), "h": .string(hash)]))
        }
        let own = "disconnects/c\(number)/n\(connections)"
        history.registers(own)
        sent.append(request("o", .onDisconnect, ["p": .string("/\(own)"), "d": [".sv": ["increment": 1]]]))
        restoring = sent.count
        for place in 0..<Self.places { sent += writes[place].isWaiting ? [write(place)] : nextWrite(to: place) }
        return sent
    }

    // MARK: Responses

    private func respond(to number: Int, _ status: String) -> [JSONValue] {
        guard let request = requests.removeValue(forKey: number) else {
            fail("has a response to no request", .number(Double(number)))
            return []
        }
        if case .raise(let value) = request { return raised(from: value, status) }
        // An outage is never a status: the socket ends, and the client comes back.
        guard status == "ok" else {
            fail("has a response to \(request)", .string(status))
            return []
        }
        switch request {
        case .signIn: isRestored()
        case .listen(let known):
            check(known)
            isRestored()
            return known.keys.contains(counter) ? nextRaise() : []
        case .onDisconnect:
            history.isRegistered("disconnects/c\(self.number)/n\(connections)")
            isRestored()
        case .write(let place):
            history.acknowledge("\(ownPath)/k\(place)", writes[place].number)
            writes[place].isWaiting = false
            return nextWrite(to: place)
        case .raise: break
        }
        return []
    }

    private func isRestored() {
        restoring -= 1
        if restoring == 0 { history.isBack(number) }
    }

    /// What had a response when the client listened is in what it has when the listen has a response.
    private func check(_ known: [String: Int]) {
        for (path, least) in known where seen(at: path) < least {
            fail("listens after number \(least) of \(path) had its response, and has", views[watched] ?? .null)
        }
    }

    // MARK: Writes

    private func nextWrite(to place: Int) -> [JSONValue] {
        guard !history.isOver else { return [] }
        writes[place] = (writes[place].number + 1, true)
        history.sends("\(ownPath)/k\(place)", writes[place].number)
        return [write(place)]
    }

    private func write(_ place: Int) -> JSONValue {
        let number = JSONValue.number(Double(writes[place].number))
        let body: JSONValue = ["p": .string("/\(ownPath)/k\(place)"), "d": ["a": number, "b": number]]
        return request(place == 0 ? "p" : "m", .write(place: place), body)
    }

    // MARK: Transactions

    private func nextRaise() -> [JSONValue] {
        guard !history.isOver else { return [] }
        let old = views[counter] ?? .null
        let number = seen(at: counter)
        return [
            request(
                "p", .raise(from: number),
                ["p": .string("/\(counter)"), "d": .number(Double(number + 1)), "h": .string(Self.hash(of: old))])
        ]
    }

    private func raised(from number: Int, _ status: String) -> [JSONValue] {
        // The event of its own write comes before the response, and so does what a refused one was compared with: SDKs
        // try again at once with what they have.
        let known = seen(at: counter)
        switch status {
        case "ok":
            if known <= number { fail("has a response before the event, raising", .number(Double(number))) }
            history.raised(counter, to: number + 1)
        case "datastale":
            if known == number { fail("does not know why it cannot raise", .number(Double(number))) }
        default: fail("has a response to a transaction", .string(status))
        }
        return nextRaise()
    }

    // MARK: Events

    private func see(_ event: JSONValue) {
        guard let path = event["b"]?["p"]?.string, let value = event["b"]?["d"],
            let listen = listens.first(where: { path == $0 || path.hasPrefix($0 + "/") })
        else { return fail("gets", event) }
        let keys = path.dropFirst(listen.count).split(separator: "/")[...]
        var view = views[listen] ?? .null
        switch event["a"] {
        case "d": view = Self.setting(keys, of: view, to: value)
        case "m":
            for member in value.object?.members ?? [] {
                view = Self.setting(keys + member.name.split(separator: "/"), of: view, to: member.value)
            }
        default: return fail("gets", event)
        }
        let before = numberPaths(of: listen).map { (path: $0, number: seen(at: $0)) }
        views[listen] = view
        for (path, last) in before where seen(at: path) < last || seen(at: path) > history.sent(path) {
            fail("sees a number of \(path) after \(last)", event)
        }
        if listen == watched { checkMembers(event) }
    }

    /// Every write is seen whole.
    private func checkMembers(_ event: JSONValue) {
        for member in views[watched]?.object?.members ?? [] where member.value["a"] != member.value["b"] {
            fail("sees a part of a write", event)
        }
    }

    /// The counter, or the places of the other client.
    private func numberPaths(of listen: String) -> [String] {
        listen == counter ? [counter] : (0..<Self.places).map { "\(watched)/k\($0)" }
    }

    /// What it has seen of a counter or place; 0 for nothing.
    private func seen(at path: String) -> Int {
        let place = String(path.split(separator: "/").last ?? "")
        let value = path == counter ? views[counter] : views[watched]?[place]?["a"]
        return Int(value?.integer ?? 0)
    }

    // MARK: Values

    private static func setting(_ keys: ArraySlice<Substring>, of value: JSONValue, to new: JSONValue) -> JSONValue {
        guard let key = keys.first.map(String.init) else { return new }
        var object = value.object ?? [:]
        let child = setting(keys.dropFirst(), of: object[key] ?? .null, to: new)
        object[key] = child.isNull ? .none : child
        return object.isEmpty ? .null : .object(object)
    }

    /// The hash by which SDKs compare values: base64 of SHA-1, empty for null. Values here are numbers and objects.
    private static func hash(of value: JSONValue) -> String {
        let text: String
        if let number = value.number {
            let digits = String(number.bitPattern, radix: 16)
            text = "number:" + String(repeating: "0", count: 16 - digits.count) + digits
        } else {
            let members = (value.object?.members ?? []).sorted { $0.name < $1.name }
            text = members.map { ":\($0.name):\(hash(of: $0.value))" }.joined()
        }
        return text.isEmpty ? "" : Data(Insecure.SHA1.hash(data: Data(text.utf8))).base64EncodedString()
    }
}

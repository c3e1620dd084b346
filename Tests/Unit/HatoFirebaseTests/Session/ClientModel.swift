import HatoModel

@testable import HatoFirebase

/// A client that knows what it must see: each of its checks is a promise of the protocol (spec realtime-database §8.5,
/// §8.6, §8.8).
struct ClientModel {
    /// A listen as the client sees it.
    struct Listen {
        var path: String
        var tag: Int?
        var number: Int
        var isAcknowledged = false
        /// The hash that it sent was that of this value.
        var isHashed = false
        /// That value.
        var known: Int?
        /// The values that were pushed, the newest last; 0 for none.
        var pushed: [Int] = []
        var value: Int?
    }

    private enum Request {
        case listen(tag: Int?, path: String)
        case unlisten
        case write(path: String, value: Int, Set<Int>)
        case transaction(path: String, expected: Int?, value: Int, Set<Int>)
        case read(path: String)
    }

    /// By the number of its request.
    private(set) var listens: [Int: Listen] = [:]
    private(set) var isOver = false
    /// Whether the service has ended the token.
    var tokenHasEnded = false
    private var requests: [(number: Int, request: Request)] = []
    /// Requests that a later one overtook.
    private var skipped: [(number: Int, request: Request)] = []
    private var lastNumber = 0

    /// Requests without a response.
    var waiting: Int { requests.count }

    /// The values of writes without a response.
    var withoutResponse: Set<Int> {
        Set(
            (requests + skipped).compactMap { _, request in
                switch request {
                case .write(_, let value, _), .transaction(_, _, let value, _): value
                case .listen, .unlisten, .read: nil
                }
            })
    }

    private mutating func send(_ request: Request, _ action: String, _ body: String) -> String {
        lastNumber += 1
        requests.append((lastNumber, request))
        return "{\"t\":\"d\",\"d\":{\"r\":\(lastNumber),\"a\":\"\(action)\",\"b\":\(body)}}"
    }

    // MARK: Requests

    /// Listens, with the hash of a value that it has if `known` is not nil; with a tag as a query.
    mutating func listen(_ path: String, tag: Int?, known: Int?) -> String {
        let query = tag.map { ",\"q\":{\"l\":9,\"vf\":\"r\",\"i\":\".key\",\"sp\":\"\($0)\"},\"t\":\($0)" } ?? ""
        let text = send(
            .listen(tag: tag, path: path), "q",
            "{\"p\":\"\(path)\"\(query),\"h\":\"\(ServiceModel.hash(of: known))\"}")
        listens[lastNumber] = Listen(
            path: path, tag: tag, number: lastNumber, isHashed: known != nil, known: known, value: known)
        return text
    }

    /// Ends a listen; from now on nothing may be pushed for it.
    mutating func unlisten(_ number: Int) -> String {
        guard let listen = listens.removeValue(forKey: number) else { return "" }
        let query = listen.tag.map { ",\"q\":{\"sp\":\"\($0)\",\"l\":9,\"i\":\".key\",\"vf\":\"r\"},\"t\":\($0)" } ?? ""
        return send(.unlisten, "n", "{\"p\":\"\(listen.path)\"\(query)}")
    }

    mutating func write(_ path: String, _ value: Int) -> String {
        send(.write(path: path, value: value, observers(of: path)), "p", "{\"p\":\"\(path)\",\"d\":\(value)}")
    }

    /// A transaction on the value of a listen.
    mutating func transact(_ number: Int, _ value: Int) -> String {
        guard let listen = listens[number] else { return "" }
        let hash = ServiceModel.hash(of: listen.value)
        return send(
            .transaction(path: listen.path, expected: listen.value, value: value, observers(of: listen.path)), "p",
            "{\"p\":\"\(listen.path)\",\"d\":\(value),\"h\":\"\(hash)\"}")
    }

    mutating func read(_ path: String) -> String { send(.read(path: path), "g", "{\"p\":\"\(path)\",\"q\":{}}") }

    /// The listens that see a write of now: those whose response has come.
    private func observers(of path: String) -> Set<Int> {
        Set(listens.values.filter { $0.path == path && $0.isAcknowledged }.map(\.number))
    }

    // MARK: What comes

    /// Takes a message; returns what it breaks.
    mutating func take(_ text: [UInt8]) -> String? {
        guard !isOver else { return "something comes behind the end of the token" }
        guard let message = try? JSONParser.parse(text), let data = message["d"] else { return "no message" }
        guard let body = data["b"] else { return message["t"] == "c" ? nil : "no body" }
        if let number = data["r"]?.integer { return respond(Int(number), body) }
        switch data["a"] {
        case "d": return push(body)
        case "c": return revoke(body)
        case "ac":
            isOver = true
            return nil
        default: return "an unknown push \(data)"
        }
    }

    /// The listen of a push, or of a revocation.
    private func listen(_ path: JSONValue?, tag: Int?) -> Listen? {
        listens.values.first { "/\(path?.string ?? "")" == $0.path && $0.tag == tag }
    }

    private mutating func push(_ body: JSONValue) -> String? {
        let tag = body["t"]?.integer.map { Int($0) }
        guard let listen = listen(body["p"], tag: tag) else { return "a push without a listen: \(body)" }
        guard let data = body["d"] else { return "a push without data" }
        let value = data.number.map { Int($0) }
        // No value is written twice.
        guard !listen.pushed.contains(value ?? 0) else { return "\(body) comes twice" }
        if listen.pushed.isEmpty, listen.isAcknowledged, !listen.isHashed { return "a first value behind its response" }
        listens[listen.number]?.pushed.append(value ?? 0)
        listens[listen.number]?.value = value
        return nil
    }

    private mutating func revoke(_ body: JSONValue) -> String? {
        var tag: Int?
        if let query = body["q"] {
            guard case .array(let queries) = query, queries.count == 1 else { return "q is no list: \(body)" }
            tag = queries[0]["sp"]?.string.flatMap { Int($0) }
        }
        guard let listen = listen(body["p"], tag: tag) else { return "a revocation without a listen: \(body)" }
        guard listen.isAcknowledged else { return "a revocation before the response" }
        listens[listen.number] = nil
        return nil
    }

    private mutating func respond(_ number: Int, _ body: JSONValue) -> String? {
        let word = body["s"]?.string ?? ""
        if tokenHasEnded {
            // Requests that met the end of the token get no response.
            while let first = requests.first, first.number < number { skipped.append(requests.removeFirst()) }
        }
        guard let first = requests.first, first.number == number else {
            return "\(number) has its response out of turn; \(requests.first?.number ?? 0) comes next"
        }
        requests.removeFirst()
        switch first.request {
        case .listen:
            guard let listen = listens[number] else { return nil }
            guard word == "ok" else {
                listens[number] = nil
                return nil
            }
            listens[number]?.isAcknowledged = true
            return listen.pushed.isEmpty && !listen.isHashed ? "the response of \(number) comes before its value" : nil
        case .write(_, let value, let observers):
            return word == "ok" ? missing(value, observers) : nil
        case .transaction(_, let expected, let value, let observers):
            if word == "ok" { return missing(value, observers) }
            guard word == "datastale" else { return nil }
            for number in observers {
                guard let listen = listens[number] else { continue }
                if listen.value == expected { return "\(first.number) is stale, and its listen has not seen why" }
            }
            return nil
        case .read(let path): return word == "ok" ? check(body["d"], of: path, for: number) : nil
        case .unlisten: return nil
        }
    }

    /// What a read returns is a value that the listens of before have been sent.
    private func check(_ data: JSONValue?, of path: String, for number: Int) -> String? {
        guard let data else { return "a read without data" }
        let value = data.number.map { Int($0) } ?? 0
        for listen in listens.values where listen.path == path && listen.number < number && listen.isAcknowledged {
            guard listen.pushed.contains(value) || listen.isHashed && value == listen.known ?? 0 else {
                return "\(number) reads \(value), which \(listen) has not been sent"
            }
        }
        return nil
    }

    /// An own write is pushed before its response, to the listens that were there.
    private func missing(_ value: Int, _ observers: Set<Int>) -> String? {
        for number in observers {
            guard let listen = listens[number], !listen.pushed.contains(value) else { continue }
            return "the response of the write of \(value) comes before its push to \(number)"
        }
        return nil
    }
}

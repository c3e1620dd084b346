/// The parameters in the target of a request for a session: `/.lp?…` and `/.ws?…` (spec realtime-database §8.1, §8.9).
struct TargetParameters {
    private var values: [String: Substring] = [:]

    /// Reads the query of a target. Of a name that comes twice, the first one counts.
    init(target: String) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return }
        for bytes in target.utf8[target.utf8.index(after: mark)...].split(separator: UInt8(ascii: "&")) {
            let pair = Substring(bytes)
            let sign = bytes.firstIndex(of: UInt8(ascii: "="))
            let name = String(sign.map { pair[..<$0] } ?? pair)
            guard values[name] == nil else { continue }
            values[name] = sign.map { pair[pair.utf8.index(after: $0)...] } ?? ""
        }
    }

    /// How many names are this one with a number behind it.
    func count(of name: String) -> Int {
        values.keys.count { key in
            let number = key.utf8.dropFirst(name.utf8.count)
            return key.hasPrefix(name) && !number.isEmpty && number.allSatisfy { (0x30...0x39).contains($0) }
        }
    }

    /// The value of a name; nil when it is absent, or no percent-encoded UTF-8.
    subscript(name: String) -> String? { values[name].flatMap { PercentDecoding.decode($0, isForm: true) } }
}

/// Which earlier session a request for a new one names.
public struct SessionParameters: Sendable, Hashable {
    /// The session that the client had before, which ends (`ls`).
    public var former: String?
    /// The polling session that a socket is to take over (`s`).
    public var takenOver: String?

    /// - Parameter target: of the request, e.g. `/.ws?v=5&ns=hato&ls=…`.
    public init(target: String) {
        let parameters = TargetParameters(target: target)
        func text(_ name: String) -> String? { parameters[name].flatMap { $0.isEmpty ? nil : $0 } }
        (former, takenOver) = (text("ls"), text("s"))
    }
}

import HatoModel

/// The members of a line from a server, as parts of its text: values are passed over, not read.
struct ServerEnvelope {
    enum ID: Hashable {
        case absent, null, number(UInt64)
        /// Not one that a client of this module assigns.
        case other

        var number: UInt64? { if case .number(let number) = self { number } else { nil } }
    }

    /// A member of `params`.
    struct Member {
        var name: String
        /// Of the line.
        var text: Range<Int>
    }

    var id = ID.absent
    var method: String?
    var result: Range<Int>?
    var error: Range<Int>?
    /// Nil when it is no object.
    var params: Range<Int>?
    /// The members of `params`.
    var members: [Member] = []

    /// More are not JSON-RPC 2.0 and what one may add to it.
    private static let membersMax = 64
    /// More than any notification has. Each takes some memory beside its text.
    private static let paramsMax = 1_024

    static func read(_ line: Span<UInt8>, nestingMax: Int) throws(JSONError) -> ServerEnvelope {
        var envelope = ServerEnvelope()
        var scanner = JSONScanner(depth: nestingMax)
        var cursor = try scanner.beginObject(line)
        var count = 0
        while let name = try scanner.nextMember(line, &cursor) {
            count += 1
            guard count <= membersMax else { throw JSONError(.tooManyValues, at: scanner.position) }
            switch name {
            case "id": envelope.id = id(try JSONSkipper.skip(line, &scanner), of: line)
            case "method": envelope.method = try scanner.string(line)
            case "result": envelope.result = try JSONSkipper.skip(line, &scanner)
            case "error": envelope.error = try JSONSkipper.skip(line, &scanner)
            case "params": try envelope.readParams(line, &scanner)
            default: _ = try JSONSkipper.skip(line, &scanner)
            }
        }
        try scanner.end(line)
        return envelope
    }

    private mutating func readParams(_ line: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONError) {
        guard try scanner.kind(line) == .object else {
            _ = try JSONSkipper.skip(line, &scanner)
            return
        }
        let start = scanner.position
        var cursor = try scanner.beginObject(line)
        while let name = try scanner.nextMember(line, &cursor) {
            guard members.count < Self.paramsMax else { throw JSONError(.tooManyValues, at: scanner.position) }
            members.append(Member(name: name, text: try JSONSkipper.skip(line, &scanner)))
        }
        params = start..<scanner.position
    }

    private static func id(_ text: Range<Int>, of line: Span<UInt8>) -> ID {
        if let number = number(line.extracting(text)) { return .number(number) }
        return line[text.lowerBound] == UInt8(ascii: "n") ? .null : .other
    }

    /// The number of an id that a client of this module assigns; nil for every other text.
    static func number(_ text: Span<UInt8>) -> UInt64? {
        guard text.count > 0, text.count < 20 else { return nil }
        var value: UInt64 = 0
        for index in text.indices {
            guard text[index] >= UInt8(ascii: "0"), text[index] <= UInt8(ascii: "9") else { return nil }
            value = value &* 10 &+ UInt64(text[index] - UInt8(ascii: "0"))
        }
        return value
    }
}

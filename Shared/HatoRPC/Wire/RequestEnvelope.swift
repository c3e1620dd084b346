import HatoModel

/// One JSON-RPC request or notification as it was read from a line, its params parsed.
struct RequestEnvelope {
    enum Params {
        case object(JSONObject)
        /// By position, at least one: the specification has them, this protocol refuses them.
        case positional
    }

    /// The id as it was sent, byte for byte; nil for a notification. Big numbers survive, small ones stay inline in the
    /// string.
    var id: String?
    var method: String
    var params: Params
    /// How many bytes of the line it took.
    var byteCount: Int
    /// About how many bytes it takes now.
    var memory: Int
}

/// What one element of a line turned out to be.
enum ReadEnvelope {
    case request(RequestEnvelope)
    /// JSON, but no request object; the response has its id if one was found, else null, as the specification wants.
    case invalid(id: String?, detail: String)

    /// About how many bytes it takes.
    var memory: Int {
        switch self {
        case .request(let request): request.memory
        case .invalid(let id, _): id?.utf8.count ?? 0
        }
    }
}

/// What a line holds.
enum ReadLine {
    case single(ReadEnvelope)
    case batch([ReadEnvelope])
    case batchTooLarge
    /// One request whose values take more memory than those of a line may; its id where one was found.
    case tooManyValues(id: String?)

    /// About how many bytes it takes.
    var memory: Int {
        switch self {
        case .single(let envelope): envelope.memory
        case .batch(let entries): entries.reduce(0) { $0 + $1.memory }
        case .batchTooLarge: 0
        case .tooManyValues(let id): id?.utf8.count ?? 0
        }
    }
}

/// Reads lines of JSON-RPC 2.0: all of a line is validated before any of it gets a response.
enum EnvelopeReader {
    static func read(_ line: Span<UInt8>, _ limits: RPCLimits) throws(JSONError) -> ReadLine {
        do { return try readAll(line, limits) } catch {
            guard error.reason == .tooManyValues else { throw error }
            return .tooManyValues(id: id(in: line, limits))
        }
    }

    /// Longer ones are not looked for in lines that are refused as a whole.
    private static let foundIDBytesMax = 256

    /// The id of a line that is one request, or begins like one, without its values; nil where there is none.
    ///
    /// A connection may carry the requests of several clients: each response needs its id.
    static func id(in line: Span<UInt8>, _ limits: RPCLimits) -> String? {
        var scanner = JSONScanner(depth: limits.nestingMax)
        guard var cursor = try? scanner.beginObject(line) else { return nil }
        while let name = try? scanner.nextMember(line, &cursor) {
            let kind = try? scanner.kind(line)
            guard let range = try? JSONSkipper.skip(line, &scanner) else { return nil }
            guard name == "id" else { continue }
            let isID = kind == .string || kind == .number || kind == .null
            // What ends the line might go on.
            let isWhole = range.upperBound < line.count && range.count <= foundIDBytesMax
            return isID && isWhole ? text(line.extracting(range)) : nil
        }
        return nil
    }

    private static func readAll(_ line: Span<UInt8>, _ limits: RPCLimits) throws(JSONError) -> ReadLine {
        let batchEntriesMax = limits.batchEntriesMax
        var scanner = JSONScanner(depth: limits.nestingMax, memoryMax: limits.requestMemoryBytesMax)
        guard try scanner.kind(line) == .array else {
            let envelope = try envelope(line, &scanner)
            try scanner.end(line)
            return .single(envelope)
        }
        var entries: [ReadEnvelope] = []
        var count = 0
        var cursor = try scanner.beginArray(line)
        while try scanner.nextElement(line, &cursor) {
            count += 1
            if count > batchEntriesMax {
                entries = []
                _ = try scanner.skip(line)
            } else {
                entries.append(try envelope(line, &scanner))
            }
        }
        try scanner.end(line)
        return count > batchEntriesMax ? .batchTooLarge : .batch(entries)
    }

    private static func envelope(_ line: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONError) -> ReadEnvelope {
        let (start, before) = (scanner.position, scanner.memory)
        guard try scanner.kind(line) == .object else {
            _ = try scanner.skip(line)
            return .invalid(id: nil, detail: "A request is an object")
        }
        var id: String?
        var method: String?
        var params = RequestEnvelope.Params.object([:])
        var problem: String?
        var isVersion2 = false
        var cursor = try scanner.beginObject(line)
        while let name = try scanner.nextMember(line, &cursor) {
            let kind = try scanner.kind(line)
            switch (name, kind) {
            case ("jsonrpc", .string): isVersion2 = try scanner.string(line) == "2.0"
            case ("id", .string), ("id", .number), ("id", .null):
                let range = try scanner.skip(line)
                id = text(line.extracting(range))
            case ("id", _):
                _ = try scanner.skip(line)
                problem = "id must be a string, a number or null"
            case ("method", .string): method = try scanner.string(line)
            case ("params", .object): params = .object(try scanner.object(line))
            case ("params", .array): params = try isEmptyArray(line, &scanner) ? .object([:]) : .positional
            case ("params", _):
                _ = try scanner.skip(line)
                problem = "params must be an object"
            default: _ = try scanner.skip(line)
            }
        }
        if !isVersion2 { problem = "jsonrpc must be \"2.0\"" }
        guard problem == nil, let method else {
            return .invalid(id: id, detail: problem ?? "method must be a string")
        }
        let byteCount = scanner.position - start
        return .request(
            RequestEnvelope(
                id: id, method: method, params: params, byteCount: byteCount,
                memory: max(byteCount, scanner.memory - before)))
    }

    /// Whether the list that is read has no element; OpenRPC clients send one for no params.
    private static func isEmptyArray(_ line: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONError) -> Bool {
        var cursor = try scanner.beginArray(line)
        var isEmpty = true
        while try scanner.nextElement(line, &cursor) {
            isEmpty = false
            _ = try scanner.skip(line)
        }
        return isEmpty
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}

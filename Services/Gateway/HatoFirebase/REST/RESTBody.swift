import HatoModel

/// The body of a PUT, POST or PATCH: a JSON text that was checked and can stand in the line of a call.
///
/// It is at least as strict as the services' own parser, so that a line with this text is always read as one call:
/// UTF-8, numbers, duplicate names and nesting. Names are keys of the tree; of a PATCH those of the outermost object
/// are paths. What values mean (`.value` beside children, increments) is left to the service.
struct RESTBody: Sendable, Hashable {
    /// The text, its line ends replaced by blanks: they can only stand between tokens.
    let text: [UInt8]
    /// How many primitives it has.
    let valueCount: Int

    /// Throws `RESTError` for a text that is not allowed: the first bad key by line and column.
    ///
    /// - Parameters:
    ///   - depth: keys above the value, for the limit of depth; of a PATCH above its keys.
    ///   - isPatch: the outermost names are paths.
    init(
        _ bytes: consuming [UInt8], depth: Int, isPatch: Bool, _ limits: RESTLimits
    ) throws(RESTError) {
        guard bytes.count <= limits.bodyBytesMax else { throw RESTErrors.writeTooBig }
        var reader = BodyReader(depth: depth, isPatch: isPatch)
        valueCount = try reader.read(bytes)
        guard valueCount <= limits.valuesMax else { throw RESTErrors.writeTooBig }
        for index in bytes.indices where bytes[index] == 0x0A || bytes[index] == 0x0D { bytes[index] = 0x20 }
        text = bytes
    }
}

/// Walks over a body once, without making its values.
private struct BodyReader {
    /// A value of the tree has 32 keys at most, and a server value two objects.
    private static let nestingMax = TreeLimits.depthMax + 3

    private let isPatch: Bool
    /// Keys from the root of the database to the current value.
    private var depth: Int
    private var scanner = JSONScanner(depth: nestingMax)
    private var valueCount = 0

    init(depth: Int, isPatch: Bool) {
        self.depth = depth
        self.isPatch = isPatch
    }

    /// Why reading ends.
    private enum Problem: Error {
        case json(JSONError)
        case refused(RESTError)
    }

    /// The number of primitives.
    mutating func read(_ bytes: [UInt8]) throws(RESTError) -> Int {
        guard bytes.contains(where: { !$0.isBlank }) else { throw RESTErrors.noData }
        do throws(Problem) {
            if isPatch {
                try patch(bytes.span)
            } else {
                try value(bytes.span, hasKeys: true)
            }
            do throws(JSONError) { try scanner.end(bytes.span) } catch { throw .json(error) }
            return valueCount
        } catch {
            switch error {
            case .refused(let error): throw error
            case .json(let error) where error.reason == .tooDeep: throw RESTErrors.dataTooDeep
            case .json: throw isPatch ? RESTErrors.invalidPatch : RESTErrors.invalidData
            }
        }
    }

    private mutating func patch(_ bytes: Span<UInt8>) throws(Problem) {
        guard try kind(bytes) == .object else { throw .refused(RESTErrors.invalidPatch) }
        var members = try beginObject(bytes)
        while let member = try nextMember(bytes, &members) {
            let keyCount = try keys(ofPath: member.name, at: member.position, bytes)
            try child(bytes, keyCount: keyCount, hasKeys: !member.name.hasSuffix(".priority"))
        }
    }

    /// - Parameter hasKeys: names are keys of the tree; false below `.value`, `.priority` and `.sv`.
    private mutating func value(_ bytes: Span<UInt8>, hasKeys: Bool) throws(Problem) {
        switch try kind(bytes) {
        case .object:
            var members = try beginObject(bytes)
            while let member = try nextMember(bytes, &members) {
                guard hasKeys, !Self.isReserved(member.name) else {
                    try value(bytes, hasKeys: false)
                    continue
                }
                if let problem = Self.problem(member.name) {
                    throw .refused(Self.badKey(problem, at: member.position, bytes))
                }
                try child(bytes, keyCount: 1, hasKeys: true)
            }
        case .array:
            var elements = try beginArray(bytes)
            while try nextElement(bytes, &elements) { try child(bytes, keyCount: hasKeys ? 1 : 0, hasKeys: hasKeys) }
        case .null, .bool, .number, .string:
            valueCount += 1
            do throws(JSONError) { _ = try scanner.skip(bytes) } catch { throw .json(error) }
        }
    }

    private mutating func child(_ bytes: Span<UInt8>, keyCount: Int, hasKeys: Bool) throws(Problem) {
        guard depth + keyCount <= TreeLimits.depthMax else { throw .refused(RESTErrors.dataTooDeep) }
        depth += keyCount
        try value(bytes, hasKeys: hasKeys)
        depth -= keyCount
    }

    // MARK: Keys

    private static func isReserved(_ name: String) -> Bool {
        name == ".priority" || name == ".value" || name == ".sv"
    }

    /// The end of the sentence that begins with "Key value can't".
    private static func problem(_ name: String) -> String? {
        guard TreeKey.problem(name) != nil else { return nil }
        if name.utf8.count > TreeLimits.keyBytesMax { return "be longer than \(TreeLimits.keyBytesMax) bytes." }
        if name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "contain control characters." }
        return "be empty or contain $ # [ ] / or ."
    }

    /// The number of keys of a path, whose last one may be `.priority`.
    private func keys(
        ofPath name: String, at position: Int, _ bytes: Span<UInt8>
    ) throws(Problem) -> Int {
        let segments = name.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        guard let last = segments.last else { throw .refused(Self.badKey(Self.problem("") ?? "", at: position, bytes)) }
        let nodes = last == ".priority" ? segments.dropLast() : segments[...]
        for segment in nodes {
            if let problem = Self.problem(segment) { throw .refused(Self.badKey(problem, at: position, bytes)) }
        }
        return nodes.count
    }

    /// - Parameter position: after the key; the scanner has read the name and the colon.
    private static func badKey(_ problem: String, at position: Int, _ bytes: Span<UInt8>) -> RESTError {
        let (line, column) = place(of: position, in: bytes)
        return RESTError(
            400, "Invalid data; couldn't parse key beginning at \(line):\(column). Key value can't \(problem)")
    }

    /// Line and column, from 1; columns are UTF-16 units.
    private static func place(of position: Int, in bytes: Span<UInt8>) -> (line: Int, column: Int) {
        var (line, column) = (1, 1)
        for index in 0..<min(position, bytes.count) {
            switch bytes[index] {
            case 0x0A: (line, column) = (line + 1, 1)
            case 0x0D where index + 1 < bytes.count && bytes[index + 1] == 0x0A: break
            case 0x0D: (line, column) = (line + 1, 1)
            // Bytes that continue a character, and the two units of a supplementary one.
            case 0x80..<0xC0: break
            case 0xF0...: column += 2
            default: column += 1
            }
        }
        return (line, column)
    }

    // MARK: Steps

    private mutating func kind(_ bytes: Span<UInt8>) throws(Problem) -> JSONScanner.Kind {
        do throws(JSONError) { return try scanner.kind(bytes) } catch { throw .json(error) }
    }

    private mutating func beginObject(_ bytes: Span<UInt8>) throws(Problem) -> JSONScanner.Cursor {
        do throws(JSONError) { return try scanner.beginObject(bytes) } catch { throw .json(error) }
    }

    private mutating func beginArray(_ bytes: Span<UInt8>) throws(Problem) -> JSONScanner.Cursor {
        do throws(JSONError) { return try scanner.beginArray(bytes) } catch { throw .json(error) }
    }

    private mutating func nextElement(
        _ bytes: Span<UInt8>, _ cursor: inout JSONScanner.Cursor
    ) throws(Problem) -> Bool {
        do throws(JSONError) { return try scanner.nextElement(bytes, &cursor) } catch { throw .json(error) }
    }

    /// The name of the next member, and the position of its quote.
    private mutating func nextMember(
        _ bytes: Span<UInt8>, _ cursor: inout JSONScanner.Cursor
    ) throws(Problem) -> (name: String, position: Int)? {
        var position = scanner.position
        do throws(JSONError) {
            guard let name = try scanner.nextMember(bytes, &cursor) else { return nil }
            // Only blanks and a comma stand before the quote.
            while position < bytes.count, bytes[position] != UInt8(ascii: "\"") { position += 1 }
            return (name, position)
        } catch { throw .json(error) }
    }
}

extension UInt8 {
    /// Whether JSON takes it for a blank (RFC 8259 §2).
    var isBlank: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}

/// Turns a JSON tree, as Firebase exports it or in export form, into the rows of `messages.import`, while the text
/// arrives in pieces: the tree may be larger than memory.
///
/// Values are read as `TreeNode(json:)` reads them (spec realtime-database §2): empties vanish, arrays become objects,
/// `.value` and `.priority` take effect, wrong keys and values are refused with their path. Rows come in the order of
/// the text. The priority of an object comes before its first value, or, when the text has it later, as soon as it is
/// read; without any value it is omitted. A duplicate name in an object is refused, as in every JSON text here, unless
/// the names of that object exceed `namesBytesMax`: then both are read.
public struct TreeRowReader: Sendable {
    private enum Member: Sendable {
        case child, value, priority
    }

    /// An object or array that is being read.
    private struct Frame {
        /// The length in bytes of the path of its node.
        let pathCount: Int
        let isArray: Bool
        var index = 0
        var member = Member.child
        var value: JSONValue?
        var priority: JSONValue?
        var hasChildren = false
        /// Whether a row of a value below it was emitted, and so the row of its priority.
        var hasRows = false
        var names = JSONNameSet()
        var namesBytes = 0
    }

    /// About the memory for the names of one open object: a million push keys.
    public static let namesBytesMax = 128 << 20
    /// About the memory of a name besides its text.
    private static let nameBytes = 64

    private var tokens = JSONTokenReader()
    private var frames: [Frame] = []
    /// The UTF-8 of the current node's path; empty for the root.
    private var path: [UInt8] = []
    private var rows: [[JSONValue]] = []
    /// The index of the next row in `rows`.
    private var next = 0

    private let namesBytesMax: Int

    public init(namesBytesMax: Int = TreeRowReader.namesBytesMax) { self.namesBytesMax = namesBytesMax }

    /// Adds the next piece of the text.
    public mutating func append(_ piece: some Collection<UInt8>) { tokens.append(piece) }

    /// Marks the end of the text.
    public mutating func finish() { tokens.finish() }

    /// The next row: a path and a primitive; nil when another piece is needed, and at the end.
    ///
    /// - Throws: `JSONError`, or `ArgumentError` for JSON that is no tree.
    public mutating func nextRow() throws -> [JSONValue]? {
        while next == rows.count {
            rows.removeAll(keepingCapacity: true)
            next = 0
            guard let token = try tokens.next() else { return nil }
            try take(token)
        }
        next += 1
        return rows[next - 1]
    }

    private mutating func take(_ token: JSONTokenReader.Token) throws {
        switch token {
        case .name(let name): try begin(member: name)
        case .value(let value): try take(value)
        case .beginObject: try open(isArray: false)
        case .beginArray: try open(isArray: true)
        case .endObject, .endArray: try close()
        }
    }

    private mutating func begin(member name: String) throws {
        let frame = frames.count - 1
        try remember(name, in: frame)
        guard name.utf8.first == UInt8(ascii: ".") else {
            frames[frame].hasChildren = true
            try refuseMixture(frames[frame])
            frames[frame].member = .child
            return try descend(name)
        }
        switch name {
        case ".priority": frames[frame].member = .priority
        case ".value": frames[frame].member = .value
        case ".sv": throw failure("invalid_server_value", "server values are only allowed in written values")
        default:
            throw failure(
                "invalid_key",
                "the key \(TreeKey.quoted(name)) begins with a dot; only \".priority\" and \".value\" may")
        }
    }

    private mutating func remember(_ name: String, in frame: Int) throws {
        guard frames[frame].namesBytes < namesBytesMax else { return }
        guard frames[frame].names.insert(name) else {
            throw failure("duplicate_key", "the key \(TreeKey.quoted(name)) occurs twice in one object")
        }
        frames[frame].namesBytes += name.utf8.count + Self.nameBytes
    }

    /// Enters a child of the current node; `leave` returns from it.
    private mutating func descend(_ name: String) throws {
        guard frames.count <= TreeLimits.depthMax else {
            throw failure("too_deep", "\(TreeLimits.depthMax) keys are the deepest a tree may be")
        }
        do { _ = try TreeKey(name) } catch { throw failure(error.reason, error.message) }
        path.append(UInt8(ascii: "/"))
        path.append(contentsOf: name.utf8)
    }

    /// Returns to the container of a child or member that has ended.
    private mutating func leave() {
        guard let frame = frames.last else { return }
        path.removeLast(path.count - frame.pathCount)
        if frame.isArray { frames[frames.count - 1].index += 1 }
    }

    private mutating func enterElement() throws {
        if let frame = frames.last, frame.isArray { try descend(String(frame.index)) }
    }

    // MARK: Values

    private mutating func take(_ value: JSONValue) throws {
        if let frame = frames.last, !frame.isArray, frame.member != .child {
            try takeMark(value)
        } else if value.isNull, frames.last?.isArray == true {
            // An array may have more null elements than the depth of a path allows.
            frames[frames.count - 1].index += 1
            return
        } else {
            try enterElement()
            if !value.isNull { try emit(value) }
        }
        leave()
    }

    /// Reads `.value` or `.priority`.
    private mutating func takeMark(_ value: JSONValue) throws {
        let frame = frames.count - 1
        if frames[frame].member == .value {
            if value.isNull { return }
            frames[frame].value = value
            return try refuseMixture(frames[frame])
        }
        switch value {
        case .null: frames[frame].priority = nil
        case .number, .string:
            try check(value)
            frames[frame].priority = value
            if frames[frame].hasRows { append(value, at: path, suffix: Self.prioritySegment) }
        case .bool, .array, .object:
            throw failure("invalid_priority", "a priority must be a number, a string or null")
        }
    }

    private mutating func open(isArray: Bool) throws {
        if let frame = frames.last, !frame.isArray {
            switch frame.member {
            case .child: break
            case .value: throw failure("invalid_value", "\".value\" must be a boolean, a number or a string")
            case .priority: throw failure("invalid_priority", "a priority must be a number, a string or null")
            }
        }
        try enterElement()
        frames.append(Frame(pathCount: path.count, isArray: isArray))
    }

    private mutating func close() throws {
        let frame = frames.removeLast()
        if let value = frame.value {
            try emit(value)
            if let priority = frame.priority { append(priority, at: path, suffix: Self.prioritySegment) }
        }
        leave()
    }

    private func refuseMixture(_ frame: Frame) throws {
        guard frame.hasChildren, frame.value != nil else { return }
        throw failure("invalid_value", "an object with \".value\" may hold only \".priority\" beside it")
    }

    // MARK: Rows

    private static let prioritySegment = Array("/.priority".utf8)

    /// Emits the value of the current node, after the priorities of the objects that are now known not to be empty.
    private mutating func emit(_ value: JSONValue) throws {
        try check(value)
        var upper = frames.count
        while upper > 0, !frames[upper - 1].hasRows { upper -= 1 }
        for index in upper..<frames.count {
            frames[index].hasRows = true
            guard let priority = frames[index].priority else { continue }
            append(priority, at: Array(path.prefix(frames[index].pathCount)), suffix: Self.prioritySegment)
        }
        append(value, at: path.isEmpty ? [UInt8(ascii: "/")] : path, suffix: [])
    }

    private mutating func append(_ value: JSONValue, at place: [UInt8], suffix: [UInt8]) {
        rows.append([.string(String(decoding: suffix.isEmpty ? place : place + suffix, as: UTF8.self)), value])
    }

    private func check(_ value: JSONValue) throws {
        guard case .string(let text) = value, text.utf8.count > TreeLimits.stringBytesMax else { return }
        throw failure(
            "string_too_long",
            "a string has \(text.utf8.count) bytes; \(TreeLimits.stringBytesMax) are allowed")
    }

    private func failure(_ reason: String, _ message: String) -> ArgumentError {
        let place = path.isEmpty ? "/" : String(decoding: path, as: UTF8.self)
        return ArgumentError(reason: reason, "At \(TreeKey.quoted(place)): \(message)")
    }
}

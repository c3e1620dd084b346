import HatoModel
import HatoRPC

/// The keys of the children of a node that can be uids, part by part, at most `NotifierLimits.recipientKeysMax`.
///
/// Keys are read page by page in their order, without what is below them, so that what is in memory at a time is one
/// response of at most `textBytesMax` and what is made of it, however large the node is. Keys between two users that
/// have devices need not be read: `goOn` passes over them.
struct KeyReading: Sendable {
    private let client: RPCClient
    private let database: DatabaseName
    private let path: TreePath
    private let textBytesMax: Int
    private let uidBytesMax: Int
    /// How many keys may still come.
    private var left: Int
    private var page = TreeQuery(order: .key)
    /// Keys of the next page.
    private var count = Self.countMax
    /// So many keys fit into a page, however long they are.
    private let countMin: Int
    private var isAtEnd = false
    /// The last key of the page before; nil at the end.
    private(set) var last: String?

    /// So many keys are read at a time, unless they are long.
    static let countMax = 1_000
    /// Of the text for one key: the key in `value` and once more in `keys`, where each of its bytes may be escaped.
    static let textBytesPerKey = 2 * (2 * TreeLimits.keyBytesMax + 3) + 5
    /// Of the text beside the keys.
    private static let textBytesBeside = 128

    init(
        _ messages: MessagesClient, _ database: DatabaseName, _ path: TreePath, _ limits: NotifierLimits,
        textBytesMax: Int
    ) {
        client = messages.reads
        self.database = database
        self.path = path
        self.textBytesMax = textBytesMax
        uidBytesMax = limits.uidBytesMax
        left = limits.recipientKeysMax
        let fitting = (textBytesMax - Self.textBytesBeside) / Self.textBytesPerKey
        countMin = min(max(1, fitting), Self.countMax)
    }

    /// Whether another part is to be read.
    var hasMore: Bool { !isAtEnd && left > 0 }

    /// The next part; nil at the end. Throws `RPCError`.
    mutating func next() async throws -> [String]? {
        guard hasMore else { return nil }
        let asked = min(count, left)
        page.limit = .first(asked)
        let request = Messages.Get(database: database, path: path, query: page, form: .shallow)
        let text: [UInt8]
        do { text = try await client.resultText(of: request, bytesMax: textBytesMax) } catch let error as RPCError {
            guard error.isTooBig, asked > countMin else { throw error }
            count = countMin
            return try await next()
        }
        let keys = try ResultText.keysOfQuery(text)
        isAtEnd = keys.count < asked
        last = isAtEnd ? nil : keys.last
        if let last { page.start = TreeQuery.Cut(.null, .after(TreeKey(unchecked: last))) }
        // Of keys as long as these, twice as many fit.
        if text.count <= textBytesMax / 2 { count = min(count * 2, Self.countMax) }
        left -= keys.count
        return keys.filter { $0.utf8.count <= uidBytesMax }
    }

    /// Passes over keys of users without devices.
    mutating func goOn(at ahead: UserAhead) {
        switch ahead.user {
        case .unknown: return
        case .none: (isAtEnd, last) = (true, nil)
        case .uid(let uid):
            page.start = TreeQuery.Cut(.null, .before(TreeKey(unchecked: uid)))
            // Of users with devices a page is to have a few.
            if ahead.passed == 0 { count = max(countMin, count / 4) }
        }
    }
}

extension MessagesClient {
    /// A node in export form. Throws `RPCError`, `too_big` when it does not fit into `bounds`.
    func node(
        _ database: DatabaseName, _ path: TreePath, within bounds: TriggerBudget.NodeBounds
    ) async throws -> JSONValue {
        let request = Messages.Get(database: database, path: path, form: .export)
        let text = try await reads.resultText(of: request, bytesMax: bounds.textBytesMax)
        do {
            return try ResultText.value(text, memoryMax: bounds.valueBytesMax)
        } catch let error as JSONError where error.reason == .tooManyValues {
            throw RPCError.resourceExhausted(
                reason: RPCError.tooBigReason, "The values of the node take more memory than a trigger may")
        }
    }
}

extension MessagesClient {
    /// A text of at most so many bytes; nil when something else or nothing is there. Throws `RPCError`.
    func text(_ database: DatabaseName, _ path: TreePath, bytesMax: Int) async throws -> String? {
        let request = Messages.Get(database: database, path: path, form: .export)
        // Each of its bytes may be escaped, and it may have a priority beside it.
        let result = try await reads.resultText(of: request, bytesMax: 2 * bytesMax + Self.bytesBeside)
        guard let value = try? ResultText.value(result, memoryMax: 4 * bytesMax + Self.bytesBeside) else { return nil }
        guard let text = (value[".value"] ?? value).string, text.utf8.count <= bytesMax else { return nil }
        return text
    }

    private static let bytesBeside = 2_048
}

/// Reads what is wanted of the text of a result of `messages.get`, and makes nothing of the rest.
private enum ResultText {
    /// Of what messages sends: deeper than any tree.
    private static let depthMax = 128

    static func keysOfQuery(_ text: [UInt8]) throws -> [String] {
        var scanner = JSONScanner(depth: depthMax)
        guard try find("keys", &scanner, text) else { return [] }
        var keys: [String] = []
        var cursor = try scanner.beginArray(text.span)
        while try scanner.nextElement(text.span, &cursor) { keys.append(try scanner.string(text.span)) }
        return keys
    }

    static func value(_ text: [UInt8], memoryMax: Int) throws -> JSONValue {
        var scanner = JSONScanner(depth: depthMax, memoryMax: memoryMax)
        return try find("value", &scanner, text) ? try scanner.value(text.span) : .null
    }

    /// Stops before the value of a member; false: there is none.
    private static func find(_ name: String, _ scanner: inout JSONScanner, _ text: [UInt8]) throws -> Bool {
        var cursor = try scanner.beginObject(text.span)
        while let member = try scanner.nextMember(text.span, &cursor) {
            if member == name { return true }
            _ = try scanner.skip(text.span)
        }
        return false
    }
}

extension RPCError {
    static let tooBigReason = "too_big"
    var isTooBig: Bool { code == .resourceExhausted && reason == Self.tooBigReason }
}

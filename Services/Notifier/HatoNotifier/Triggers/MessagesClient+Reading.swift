import HatoModel
import HatoRPC

/// The keys of the children of a node that can be uids, part by part, at most `NotifierLimits.recipientKeysMax`.
///
/// Children are read page by page in the order of keys, so that what is in memory at a time is one response of at most
/// `textBytesMax` and what is made of it, however large the node is. Keys between two users that have devices need not
/// be read: `goOn` passes over them. A child that does not fit alone is passed by `pass`, by its key.
struct KeyReading: Sendable {
    private let client: RPCClient
    private let database: DatabaseName
    private let path: TreePath
    private let textBytesMax: Int
    private let uidBytesMax: Int
    /// How many keys may still come.
    private var left: Int
    private var page = TreeQuery(order: .key)
    /// Children of the next page.
    private var count = Self.countMax
    /// More have been too many for a page.
    private var countMax = Self.countMax
    private var isAtEnd = false
    /// The last key of the page before; nil at the end.
    private(set) var last: String?
    private var requestsLeft: Int

    /// So many children are read at a time.
    static let countMax = 1_000
    private static let countMin = 16
    /// Each reads once more the child that does not fit, until the key is behind it.
    private static let passesMax = 32

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
        requestsLeft = max(64, limits.recipientKeysMax / 16)
    }

    /// Keys that were passed since a page was read.
    private var passesInARow = 0

    /// Whether another part is to be read.
    var hasMore: Bool { !isAtEnd && left > 0 }

    /// The next part; nil at the end. Throws `RPCError`: `too_big` when one child alone does not fit.
    mutating func next() async throws -> [String]? {
        guard hasMore else { return nil }
        let keys = try await readPage()
        left -= keys.count
        return keys.filter { $0.utf8.count <= uidBytesMax }
    }

    /// Behind which key the next user is looked for when a child does not fit alone. Of children whose keys are
    /// numbers, which come first, the rest is passed.
    var passedKey: String { last.flatMap { KeyOrder.integer($0) == nil ? $0 : nil } ?? "" }

    /// Goes on behind a key, without reading what is before it. Returns whether there is a child with the key.
    mutating func pass(_ key: String) async throws -> Bool {
        guard passesInARow < Self.passesMax else {
            throw RPCError.resourceExhausted(
                reason: RPCError.tooBigReason, "A child is too large, and too many users could be before it")
        }
        passesInARow += 1
        page.start = TreeQuery.Cut(.null, .after(TreeKey(unchecked: key)))
        (last, countMax) = (key, Self.countMax)
        guard let child = try? path.child(TreeKey(unchecked: key)) else { return false }
        let isThere: Bool
        try countRequest()
        do {
            let request = Messages.Get(database: database, path: child, form: .shallow)
            let text = try await client.resultText(of: request, bytesMax: textBytesMax)
            isThere = try ResultText.isValue(text)
        } catch let error as RPCError {
            guard error.isTooBig else { throw error }
            isThere = true
        }
        if isThere { left -= 1 }
        return isThere && key.utf8.count <= uidBytesMax
    }

    private mutating func countRequest() throws {
        guard requestsLeft > 0 else {
            throw RPCError.resourceExhausted(
                reason: RPCError.tooBigReason, "The keys of the node take too many requests to read")
        }
        requestsLeft -= 1
    }

    /// Passes over keys of users without devices.
    mutating func goOn(at ahead: UserAhead) {
        switch ahead.user {
        case .unknown: return
        case .none: (isAtEnd, last) = (true, nil)
        case .uid(let uid):
            page.start = TreeQuery.Cut(.null, .before(TreeKey(unchecked: uid)))
            // Of users with devices a page is to have a few.
            if ahead.passed == 0 { count = min(count, max(Self.countMin, count / 4)) }
        }
    }

    private mutating func readPage() async throws -> [String] {
        while true {
            let asked = min(count, left)
            page.limit = .first(asked)
            try countRequest()
            let text: [UInt8]
            do {
                let request = Messages.Get(database: database, path: path, query: page)
                text = try await client.resultText(of: request, bytesMax: textBytesMax)
            } catch let error as RPCError {
                count = asked
                guard error.isTooBig, count > 1 else { throw error }
                countMax = max(1, count / 2)
                count = max(1, count / 8)
                continue
            }
            let keys = try ResultText.keysOfQuery(text)
            isAtEnd = keys.count < asked
            last = isAtEnd ? nil : keys.last
            if let last { page.start = TreeQuery.Cut(.null, .after(TreeKey(unchecked: last))) }
            // The children that were too large may be passed.
            if asked == countMax { countMax = min(Self.countMax, 2 * countMax) }
            count = min(count * 2, countMax)
            passesInARow = 0
            return keys
        }
    }
}

extension MessagesClient {
    /// The keys of a node that can be uids, read at once and without values of children that have children; nil: they
    /// are more than a page of `KeyReading`, or do not fit into `textBytesMax`.
    func fewKeys(
        _ database: DatabaseName, _ path: TreePath, _ limits: NotifierLimits, textBytesMax: Int
    ) async throws -> [String]? {
        let text: [UInt8]
        do {
            let request = Messages.Get(database: database, path: path, form: .shallow)
            text = try await reads.resultText(of: request, bytesMax: textBytesMax)
        } catch let error as RPCError where error.isTooBig { return nil }
        guard let keys = try ResultText.keysOfChildren(text, countMax: KeyReading.countMax) else { return nil }
        return keys.prefix(limits.recipientKeysMax).filter { $0.utf8.count <= limits.uidBytesMax }
    }

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

/// Reads what is wanted of the text of a result of `messages.get`, and makes nothing of the rest.
private enum ResultText {
    /// Of what messages sends: deeper than any tree.
    private static let depthMax = 128

    /// Of a shallow read: the members of an object; keys that count from 0 come as an array. Nil: more than `countMax`.
    static func keysOfChildren(_ text: [UInt8], countMax: Int) throws -> [String]? {
        var scanner = JSONScanner(depth: depthMax)
        guard try find("value", &scanner, text) else { return [] }
        var keys: [String] = []
        switch try scanner.kind(text.span) {
        case .object:
            var cursor = try scanner.beginObject(text.span)
            while let key = try scanner.nextMember(text.span, &cursor) {
                guard keys.count < countMax else { return nil }
                _ = try scanner.skip(text.span)
                keys.append(key)
            }
        case .array:
            var cursor = try scanner.beginArray(text.span)
            var index = 0
            while try scanner.nextElement(text.span, &cursor) {
                guard keys.count < countMax else { return nil }
                if try scanner.kind(text.span) != .null { keys.append(String(index)) }
                _ = try scanner.skip(text.span)
                index += 1
            }
        default: break
        }
        return keys
    }

    /// Whether there is a node.
    static func isValue(_ text: [UInt8]) throws -> Bool {
        var scanner = JSONScanner(depth: depthMax)
        return try find("value", &scanner, text) && scanner.kind(text.span) != .null
    }

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

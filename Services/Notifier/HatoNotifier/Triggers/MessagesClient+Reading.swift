import HatoModel
import HatoRPC

/// The keys of the children of a node that can be uids, part by part, at most `NotifierLimits.recipientKeysMax`.
///
/// A node whose keys fit into `textBytesMax` is read at once; of another one children are read page by page in the
/// order of keys, so that what is in memory at a time is one response of so many bytes and what is made of it, however
/// large the node is.
struct KeyReading: Sendable {
    private let client: RPCClient
    private let database: DatabaseName
    private let path: TreePath
    private let textBytesMax: Int
    private let uidBytesMax: Int
    /// How many keys may still come.
    private var left: Int
    /// The next page; nil: the node is to be read at once.
    private var page: TreeQuery?
    /// Children of the next page.
    private var count = Self.countMax
    private var isAtEnd = false

    private static let countMax = 1_000

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
    }

    /// The next part; nil at the end. Throws `RPCError`: `too_big` when one child alone does not fit.
    mutating func next() async throws -> [String]? {
        guard !isAtEnd, left > 0 else { return nil }
        let keys: [String]
        if let page { keys = try await read(page) } else { keys = try await readAtOnce() }
        let uids = Array(keys.lazy.filter { [uidBytesMax] in $0.utf8.count <= uidBytesMax }.prefix(left))
        left -= uids.count
        return uids
    }

    private mutating func readAtOnce() async throws -> [String] {
        let text: [UInt8]
        do {
            let request = Messages.Get(database: database, path: path, form: .shallow)
            text = try await client.resultText(of: request, bytesMax: textBytesMax)
        } catch let error as RPCError {
            guard error.isTooBig else { throw error }
            let first = TreeQuery(order: .key)
            page = first
            return try await read(first)
        }
        isAtEnd = true
        return try ResultText.keysOfChildren(text)
    }

    private mutating func read(_ query: TreeQuery) async throws -> [String] {
        var query = query
        while true {
            query.limit = .first(count)
            let text: [UInt8]
            do {
                let request = Messages.Get(database: database, path: path, query: query)
                text = try await client.resultText(of: request, bytesMax: textBytesMax)
            } catch let error as RPCError {
                guard error.isTooBig, count > 1 else { throw error }
                count = max(1, count / 8)
                continue
            }
            let keys = try ResultText.keysOfQuery(text)
            isAtEnd = keys.count < count
            if let last = keys.last { query.start = TreeQuery.Cut(.null, .after(TreeKey(unchecked: last))) }
            page = query
            count = min(count * 2, Self.countMax)
            return keys
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

/// Reads what is wanted of the text of a result of `messages.get`, and makes nothing of the rest.
private enum ResultText {
    /// Of what messages sends: deeper than any tree.
    private static let depthMax = 128

    /// Of a shallow read: the members of an object; keys that count from 0 come as an array.
    static func keysOfChildren(_ text: [UInt8]) throws -> [String] {
        var scanner = JSONScanner(depth: depthMax)
        guard try find("value", &scanner, text) else { return [] }
        var keys: [String] = []
        switch try scanner.kind(text.span) {
        case .object:
            var cursor = try scanner.beginObject(text.span)
            while let key = try scanner.nextMember(text.span, &cursor) {
                _ = try scanner.skip(text.span)
                keys.append(key)
            }
        case .array:
            var cursor = try scanner.beginArray(text.span)
            var index = 0
            while try scanner.nextElement(text.span, &cursor) {
                if try scanner.kind(text.span) != .null { keys.append(String(index)) }
                _ = try scanner.skip(text.span)
                index += 1
            }
        default: break
        }
        return keys
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
    fileprivate var isTooBig: Bool { code == .resourceExhausted && reason == Self.tooBigReason }
}

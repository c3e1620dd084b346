import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// One page of an export: the leaves below a path, in key order, each with its path seen from there.
///
/// **Where a page may end.** Behind a value, or the priority of that value. The priority of an object stands before its
/// children; on a page of its own it would be set where nothing is yet, which sets nothing (spec realtime-database §2),
/// and be lost when the pages are imported one by one. So such rows go on the next page, and on one that has nothing
/// else the first value follows, whatever the limit.
struct ExportPage {
    let database: Database
    let path: TreePath
    /// The path of the last row of the page before.
    let after: String?
    let rowsMax: Int
    /// Of a page as it is written: JSON may take several times what is stored. A row that is larger has a page to
    /// itself.
    let bytesMax: Int
    /// What the page may take before the read must begin again with a reservation; nil: it has one.
    var unreservedBytesMax: Int?

    struct Page {
        /// An array of pairs of a path and a primitive.
        var rows: EncodedJSON
        /// The path of the last row; nil: there are no more.
        var after: String?
    }

    /// Where the page may end.
    private struct End {
        var count: Int
        var path: [UInt8]
    }

    /// Adds the name of the parameter to the problem of its value.
    private static func naming<Value>(
        _ parameter: String, _ body: () throws(ArgumentError) -> Value
    ) throws(TreeError) -> Value {
        do { return try body() } catch { throw .invalid(parameter: parameter, error) }
    }

    /// - Throws: also `TreeError.tooBig` when the page needs more than `unreservedBytesMax`.
    func read(_ snapshot: any StoreSnapshot) throws -> Page {
        try Self.naming("path") { () throws(ArgumentError) in try path.requireNode() }
        let base = database.codec.key(of: path)
        var range = KeyRange(prefix: base)
        // The leaf that the next row may be the priority of.
        var leaf: [UInt8] = []
        if let after {
            leaf = try Self.naming("after") { () throws(ArgumentError) in
                database.codec.key(of: try path.appending(TreePath(after)))
            }
            // The next key after one is that key with a zero byte behind it.
            range.lower = leaf + [0]
        }
        var paths = RowPaths(base: base)
        var writer = JSONWriter(capacity: 64 * min(rowsMax, 4_096))
        writer.beginArray()
        var (rowCount, end, isCut) = (0, End?.none, false)
        let tree = TreeRows(StoreTreeReader(snapshot), codec: database.codec)
        try tree.scan(lower: range.lower, upper: range.upper, reverse: false) { key, value in
            if end != nil, rowCount >= rowsMax {
                isCut = true
                return .stop
            }
            try paths.advance(to: key)
            writer.beginArray()
            writer.write(utf8: paths.text.span)
            try TreeLeafCodec.write(value, to: &writer)
            writer.endArray()
            if let unreservedBytesMax, writer.count > unreservedBytesMax {
                throw TreeError.tooBig(bytesMax: unreservedBytesMax)
            }
            // What may be too much is taken back below.
            if end != nil, writer.count > bytesMax {
                isCut = true
                return .stop
            }
            rowCount += 1
            if !paths.isPriority {
                leaf = key.withUnsafeBufferPointer { Array($0) }
                end = End(count: writer.count, path: paths.text)
            } else if key.count == leaf.count + 1, key.starts(with: leaf) {
                end = End(count: writer.count, path: paths.text)
            }
            return .next
        }
        if isCut, let end { writer.truncate(to: end.count, valueFollows: false) }
        writer.endArray()
        return Page(
            rows: EncodedJSON(writer), after: isCut ? end.map { String(decoding: $0.path, as: UTF8.self) } : nil)
    }
}

extension Span<UInt8> {
    fileprivate func starts(with prefix: [UInt8]) -> Bool {
        guard count >= prefix.count else { return false }
        for index in prefix.indices where self[index] != prefix[index] { return false }
        return true
    }
}

/// The rows or the tree of an import as one write.
enum ImportedRows {
    /// Rows become an update: each replaces what is at its place. The priority of a leaf joins the leaf's row, after
    /// which `export` writes it; that of an object is a place of its own.
    static func mutation(_ request: Messages.Import, rowsMax: Int) throws -> Mutation {
        switch (request.rows, request.value) {
        case (nil, let value?): return .set(value, at: request.path)
        case (let rows?, nil): return try mutation(rows, at: request.path, rowsMax: rowsMax)
        case (nil, nil):
            throw RPCError.invalidParams("rows", "'rows' or 'value' is needed", reason: "missing_parameter")
        case (_?, _?): throw RPCError.invalidParams("value", "'rows' and 'value' exclude each other")
        }
    }

    /// What is wrong with the values of the write is wrong with the rows they came from.
    static func naming(_ error: any Error, in request: Messages.Import) -> any Error {
        guard request.rows != nil, case .invalid(let parameter, let reason)? = error as? TreeError, parameter != "path"
        else { return error }
        return TreeError.invalid(parameter: "rows", reason)
    }

    private static func mutation(_ rows: [[JSONValue]], at path: TreePath, rowsMax: Int) throws -> Mutation {
        guard rows.count <= rowsMax else {
            throw RPCError.invalidArgument(
                "rows", reason: "too_many_rows",
                "A call imports at most \(rowsMax) rows, all or none; send the others in further calls")
        }
        var members: [JSONObject.Member] = []
        members.reserveCapacity(rows.count)
        for (index, row) in rows.enumerated() {
            guard row.count == 2, let place = row[0].string else {
                throw MessagesError.wrongRow(index: index, "is no pair of a path and a primitive")
            }
            switch row[1] {
            case .array, .object, .null: throw MessagesError.wrongRow(index: index, "holds no primitive")
            case .bool, .number, .string: break
            }
            if let leaf = members.last, place == priorityPlace(of: leaf.name) {
                members[members.count - 1].value = [".value": leaf.value, ".priority": row[1]]
            } else {
                members.append(JSONObject.Member(place, row[1]))
            }
        }
        if members.count == 1, members[0].name == "/" { return .set(members[0].value, at: path) }
        return .update(JSONObject(uniqueMembers: members), at: path)
    }

    private static func priorityPlace(of leaf: String) -> String {
        leaf == "/" ? "/.priority" : leaf + "/.priority"
    }
}

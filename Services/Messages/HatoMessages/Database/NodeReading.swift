import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Reads of one database in one snapshot, written as JSON as they are read.
struct NodeReading {
    let database: Database
    let snapshot: any StoreSnapshot
    /// Bytes of one response.
    let bytesMax: Int
    /// Bytes of a node that is hashed.
    var hashedBytesMax = WritePlanner.hashedBytesMax
    private let isMetered: Bool
    let nodes: NodeReader

    /// - Parameter database: as of the snapshot.
    init(_ database: Database, in snapshot: any StoreSnapshot, bytesMax: Int, meter: ReadingMeter? = nil) {
        self.database = database
        self.snapshot = snapshot
        self.bytesMax = bytesMax
        let stored = StoreTreeReader(snapshot)
        isMetered = meter != nil
        let reader: any TreeReader = if let meter { MeteredReader(stored, meter) } else { stored }
        nodes = NodeReader(reader, codec: database.codec)
    }

    var runner: QueryRunner {
        var runner = QueryRunner(nodes, indexCodec: database.indexCodec, bytesMax: bytesMax)
        // A metered read must not read rows twice.
        if !isMetered { runner.newest = database.newest }
        return runner
    }

    /// The result of `messages.get`, for who may read it.
    func response(to request: Messages.Get) throws -> EncodedJSON {
        var writer = JSONWriter(capacity: 512)
        writer.beginObject()
        writer.member("value")
        let format: NodeReader.Format = request.export == true ? .export : .plain
        if let query = request.query, try !query.isDefault || nodes.leaf(at: request.path) == nil {
            let runner = runner
            let sortKeys = try runner.sortKeys(
                query, at: request.path, by: plan(query, request.path), sortKeyBytesMax: bytesMax)
            if request.shallow == true {
                try runner.writeShallow(sortKeys, to: &writer)
            } else {
                try runner.write(sortKeys, at: request.path, format, to: &writer)
            }
            writer.member("keys")
            QueryRunner.writeKeys(sortKeys, to: &writer)
        } else if request.shallow == true {
            try nodes.writeShallow(request.path, to: &writer, bytesMax: bytesMax)
        } else {
            try nodes.write(request.path, format, to: &writer, bytesMax: bytesMax)
        }
        if request.etag == true {
            writer.member("etag")
            writer.write(try etag(of: request.path))
        }
        writer.member("version")
        writer.write(snapshot.version)
        writer.endObject()
        return EncodedJSON(writer)
    }

    func etag(of path: TreePath) throws -> String {
        SimpleHash.etag(try nodes.node(at: path, bytesMax: hashedBytesMax))
    }

    /// How a query is read: by an index, or not at all.
    private func plan(_ query: TreeQuery, _ path: TreePath) throws -> QueryPlan {
        do { return try QueryPlan.indexed(query, at: path, in: database.indexes) } catch {
            guard case .indexNotDefined(let on, _) = error else { throw error }
            let isBuilding = database.indexes.indexes.contains {
                !$0.isReady && $0.definition.on == on && $0.definition.covers(path)
            }
            throw isBuilding ? MessagesError.indexBuilding(on: on, path: path) : error
        }
    }
}

extension Messages.Get {
    /// Refuses parameters that mean nothing together.
    func checkCombination() throws(RPCError) {
        if shallow == true, export == true {
            throw .invalidArgument(
                "shallow", reason: "shallow_alone",
                "shallow cannot be combined with export, e.g. {\"path\": \"/chats\", \"shallow\": true}")
        }
        guard query != nil else { return }
        if etag == true {
            throw .invalidArgument(
                "etag", reason: "etag_of_query",
                "Only a whole node has an etag, not what a query selects, e.g. {\"path\": \"/chats/c1\", \"etag\": true}"
            )
        }
        try path.requireChildren()
    }
}

extension TreePath {
    /// Refuses the place of a query that can have no children.
    func requireChildren() throws(RPCError) {
        guard isPriority else { return }
        throw .invalidArgument(
            "path", reason: "invalid_path",
            "A priority has no children to query; ask for its node, e.g. \(node.text)")
    }

    /// Refuses the place of a listener that is no node.
    func requireListenable() throws(RPCError) {
        do { try requireNode() } catch {
            throw .invalidArgument("path", reason: error.reason, error.message)
        }
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Reads of one database in one snapshot, written as JSON as they are read.
struct NodeReading {
    let database: Database
    let snapshot: any StoreSnapshot
    /// Bytes of one answer.
    let bytesMax: Int
    private let nodes: NodeReader

    init(database: Database, snapshot: any StoreSnapshot, bytesMax: Int) {
        self.database = database
        self.snapshot = snapshot
        self.bytesMax = bytesMax
        nodes = NodeReader(StoreTreeReader(snapshot), codec: database.codec)
    }

    /// The result of `messages.get`.
    func answer(_ request: Messages.Get, to caller: Caller) throws -> EncodedJSON {
        try check(request)
        try database.authorise(reading: request.path, by: caller)
        var writer = JSONWriter(capacity: 256)
        writer.beginObject()
        writer.member("value")
        if request.shallow == true {
            try nodes.writeShallow(request.path, to: &writer, bytesMax: bytesMax)
        } else {
            try nodes.write(request.path, request.export == true ? .export : .plain, to: &writer, bytesMax: bytesMax)
        }
        if request.etag == true {
            writer.member("etag")
            writer.write(SimpleHash.etag(try nodes.node(at: request.path)))
        }
        writer.member("version")
        writer.write(snapshot.version)
        writer.endObject()
        return EncodedJSON(writer)
    }

    private func check(_ request: Messages.Get) throws(RPCError) {
        if request.shallow == true, request.query != nil || request.export == true {
            throw .invalidArgument(
                "shallow", reason: "shallow_alone", "shallow cannot be combined with query or export")
        }
        if request.query != nil, request.etag == true {
            throw .invalidArgument("etag", reason: "etag_of_query", "Only a whole node has an etag, not what a query selects")
        }
    }
}

import HatoModel

/// The params of native calls as text: values of clients are copied into them, in one line.
struct NativeParams {
    /// The database of the session; nil: the default one.
    let database: DatabaseName?

    /// Params with the path and what `members` writes.
    func at(_ path: TreePath, capacity: Int = 128, members: (inout JSONWriter) -> Void = { _ in }) -> [UInt8] {
        var writer = JSONWriter(capacity: capacity)
        writer.beginObject()
        if let database {
            writer.member("database")
            writer.write(database.rawValue)
        }
        writer.member("path")
        path.write(into: &writer)
        members(&writer)
        writer.endObject()
        return writer.bytes
    }

    /// Params with a path and the client's value as the member `name`.
    func at(_ path: TreePath, _ name: String, _ text: ArraySlice<UInt8>, ifMatch etag: String? = nil) -> [UInt8] {
        at(path, capacity: 192 + text.count) { writer in
            if let etag {
                writer.member("ifMatch")
                writer.write(etag)
            }
            writer.member(name)
            writer.write(passed: text)
        }
    }

    /// Params of a read or a listen.
    func at(_ path: TreePath, _ query: WireQuery, members: (inout JSONWriter) -> Void) -> [UInt8] {
        at(path) { writer in
            if let native = query.native {
                writer.member("query")
                writer.write(native)
            }
            members(&writer)
        }
    }

    /// Params of a small read: whatever its outcome is, it says whether there is the database.
    var existence: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("database")
        writer.write((database ?? .default).rawValue)
        writer.member("path")
        writer.write("/-/-")
        writer.endObject()
        return writer.bytes
    }

    /// Params of `messages.unlisten`.
    static func ending(_ subscription: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("subscription")
        writer.write(subscription)
        writer.endObject()
        return writer.bytes
    }
}

import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// The members of a `messages.event` beside its subscription, as JSON text: written once for all who are sent the same.
enum EventMembers {
    /// `"version":…,"events":[…]`; `body` writes the entries.
    static func encode(version: UInt64, _ body: (inout JSONWriter) throws -> Void) rethrows -> EncodedJSON {
        var writer = JSONWriter(capacity: 256)
        writer.member("version")
        writer.write(version)
        writer.member("events")
        writer.beginArray()
        try body(&writer)
        writer.endArray()
        return EncodedJSON(writer)
    }

    static func encode(version: UInt64, _ events: [ListenerEvent]) -> EncodedJSON {
        encode(version: version) { writer in
            for event in events { event.write(to: &writer) }
        }
    }

    /// One put of `/` with the whole value of a topic.
    ///
    /// - Parameter window: of the query, as of what is read, if it is known.
    static func whole(_ key: TopicKey, _ reading: NodeReading, _ window: QueryWindow? = nil) throws -> EncodedJSON {
        try encode(version: reading.snapshot.version) { writer in
            writer.beginObject()
            writer.member("type")
            writer.write("put")
            writer.member("path")
            writer.write("/")
            writer.member("data")
            if let query = key.query {
                let plan = QueryPlan(query, at: key.path, in: reading.database.indexes)
                let sortKeys =
                    try window?.sortKeys(reading: reading.runner)
                    ?? reading.runner.sortKeys(query, at: key.path, by: plan, sortKeyBytesMax: reading.bytesMax)
                if sortKeys.isEmpty {
                    writer.writeNull()
                } else {
                    try reading.runner.write(sortKeys, at: key.path, .export, to: &writer)
                }
            } else {
                try reading.nodes.write(key.path, .export, to: &writer, bytesMax: reading.bytesMax)
            }
            writer.endObject()
        }
    }
}

import HatoModel

/// The pushes to a client that native notifications become (spec realtime-database §8.5, §8.8). Data is copied as it
/// is: both sides use the export form.
enum EventPush {
    /// The pushes for one `messages.event`, in order; nil when its params cannot be read.
    ///
    /// - Parameter params: the params of the notification as an object, with or without other members.
    static func pushes(_ params: ArraySlice<UInt8>, for listen: ListenTable.Listen) -> [[UInt8]]? {
        guard var members = TrustedMembers(params) else { return nil }
        while let member = members.next() {
            guard member.name.equals("events") else { continue }
            guard var entries = TrustedMembers(member.value) else { return nil }
            var pushes: [[UInt8]] = []
            while let entry = entries.next() {
                guard let push = push(entry.value, for: listen) else { return nil }
                pushes.append(push)
            }
            return pushes
        }
        return nil
    }

    private static func push(_ entry: ArraySlice<UInt8>, for listen: ListenTable.Listen) -> [UInt8]? {
        guard var members = TrustedMembers(entry) else { return nil }
        var type, path, data: ArraySlice<UInt8>?
        while let member = members.next() {
            if member.name.equals("type") { type = member.value }
            if member.name.equals("path") { path = member.value }
            if member.name.equals("data") { data = member.value }
        }
        guard let type, let path, let data, path.count >= 2 else { return nil }
        let isPatch = type.equals("\"patch\"")
        guard isPatch || type.equals("\"put\"") else { return nil }
        return ServerText.push(isPatch ? "m" : "d", capacity: 96 + listen.path.count + path.count + data.count) {
            writer in
            writer.member("p")
            write(path.dropFirst().dropLast(), below: listen.path, into: &writer)
            writer.member("d")
            writer.write(encoded: data.span, 0..<data.count)
            if let tag = listen.tag {
                writer.member("t")
                writer.write(tag)
            }
        }
    }

    /// - Parameter relative: the path from the listen on, with a slash at its start.
    private static func write(
        _ relative: ArraySlice<UInt8>, below path: [UInt8], into writer: inout JSONWriter
    ) {
        writer.beginString()
        writer.appendRaw(path)
        if relative.count > 1 { writer.appendRaw(path.isEmpty ? relative.dropFirst() : relative) }
        writer.endString()
    }

    /// The push by which a client loses a listen. Its query is in a list; the default one has none.
    static func revocation(of listen: ListenTable.Listen) -> [UInt8] {
        ServerText.push("c") { writer in
            writer.member("p")
            writer.beginString()
            writer.appendRaw(listen.path)
            writer.endString()
            guard !listen.query.isEmpty else { return }
            writer.member("q")
            writer.beginArray()
            writer.write(encoded: Array(listen.query.utf8))
            writer.endArray()
        }
    }
}

public import HatoModel

extension QueryRunner {
    /// Writes the object of these children of `path`, in this order, directly from their rows.
    ///
    /// Children in key order, such as messages by date, are read with one scan: opening a scan for each costs more than
    /// reading it.
    ///
    /// - Throws: `TreeError.tooBig` as soon as more than `bytesMax` bytes are written.
    public func write(
        _ sortKeys: [SortKey], at path: TreePath, _ format: NodeReader.Format, to writer: inout JSONWriter
    ) throws {
        let result = ChildrenWriter(
            base: nodes.codec.key(of: path), format: format,
            limit: JSONLimit(bytesMax: bytesMax, after: writer.count))
        writer.beginObject()
        var rest = sortKeys[...]
        while !rest.isEmpty {
            let run = Self.ascendingStart(of: rest)
            try write(run, result, to: &writer)
            rest = rest.dropFirst(run.count)
        }
        writer.endObject()
    }

    /// Writes the object with `true` for each of these children, in this order; reads nothing.
    ///
    /// - Throws: `TreeError.tooBig` as soon as more than `bytesMax` bytes are written.
    public func writeShallow(_ sortKeys: [SortKey], to writer: inout JSONWriter) throws {
        let limit = JSONLimit(bytesMax: bytesMax, after: writer.count)
        writer.beginObject()
        for sortKey in sortKeys {
            writer.member(sortKey.key.text)
            writer.write(true)
            try limit.check(writer)
        }
        writer.endObject()
    }

    /// The longest ascending start of these children in key order.
    private static func ascendingStart(of sortKeys: ArraySlice<SortKey>) -> ArraySlice<SortKey> {
        var end = sortKeys.startIndex + 1
        while end < sortKeys.endIndex, sortKeys[end - 1].key < sortKeys[end].key { end += 1 }
        return sortKeys[..<end]
    }

    private func write(_ key: TreeKey, _ result: ChildrenWriter, to writer: inout JSONWriter) throws {
        let prefix = result.prefix(of: key)
        writer.member(key.text)
        var rows = NodeRowsWriter(nodes, base: prefix, format: result.format, limit: result.limit)
        try nodes.reader.scanNode(prefix) { row, value in
            try rows.append(row, value, to: &writer)
            return .next
        }
        try rows.finish(&writer)
    }

    private func write(_ run: ArraySlice<SortKey>, _ result: ChildrenWriter, to writer: inout JSONWriter) throws {
        guard let last = run.last else { return }
        if run.count == 1 { return try write(last.key, result, to: &writer) }
        guard let upper = TreeKeyCodec.upperBound(of: result.prefix(of: last.key)) else { return }
        var index = run.startIndex
        var prefix = result.prefix(of: run[index].key)
        writer.member(run[index].key.text)
        var rows = NodeRowsWriter(nodes, base: prefix, format: result.format, limit: result.limit)
        try nodes.reader.scan(lower: prefix, upper: upper, reverse: false) { row, value in
            while !row.begins(with: prefix.span) {
                try rows.finish(&writer)
                index += 1
                guard index < run.endIndex else { return .stop }
                result.change(&prefix, to: run[index].key)
                writer.member(run[index].key.text)
                rows.restart(base: prefix)
                if prefix.span.isBehind(row) { return .seek(prefix) }
            }
            try rows.append(row, value, to: &writer)
            return .next
        }
        // The last one, and those without a row: there are none in one state of a database.
        while index < run.endIndex {
            try rows.finish(&writer)
            index += 1
            guard index < run.endIndex else { break }
            writer.member(run[index].key.text)
            rows.restart(base: prefix)
        }
    }
}

/// The common parameters of the children of one result.
private struct ChildrenWriter {
    /// The common prefix of the rows of the collection.
    let base: [UInt8]
    let format: NodeReader.Format
    let limit: JSONLimit

    func prefix(of key: TreeKey) -> [UInt8] {
        var bytes = base
        TreeKeyCodec.append(key, to: &bytes)
        return bytes
    }

    /// Changes the prefix of one child to that of another, in its buffer.
    func change(_ prefix: inout [UInt8], to key: TreeKey) {
        prefix.removeSubrange(base.count...)
        TreeKeyCodec.append(key, to: &prefix)
    }
}

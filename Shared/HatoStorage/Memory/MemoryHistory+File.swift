/// A memory store's backup: one file of numbers (8 bytes, most significant first) and byte strings (length, then
/// bytes).
extension MemoryHistory {
    private static let mark = Array("hato-memory-store 1\n".utf8)

    func save(to folder: String) throws(StoreError) {
        var bytes = Self.mark
        func append(_ number: UInt64) {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }
        func append(_ string: Span<UInt8>) {
            append(UInt64(string.count))
            bytes.append(contentsOf: Array(string))
        }
        append(version)
        append(compacted)
        for record in records { append(record.span) }
        append(UInt64(rows.count))
        rows.scan(.all, reverse: false) { key, value in
            append(key)
            append(value)
            return .next
        }
        try Files.createNewFolder(folder)
        try Files.write(bytes, to: folder + "/memory")
    }

    init(folder: String) throws(StoreError) {
        var bytes = try Files.read(folder + "/memory")[...]
        guard bytes.starts(with: Self.mark) else { throw .corrupted("\(folder)/memory is no backup of a memory store") }
        bytes.removeFirst(Self.mark.count)
        func take(_ count: UInt64) throws(StoreError) -> [UInt8] {
            guard count <= bytes.count else { throw .corrupted("\(folder)/memory ends too soon") }
            defer { bytes.removeFirst(Int(count)) }
            return Array(bytes.prefix(Int(count)))
        }
        func number() throws(StoreError) -> UInt64 { try take(8).reduce(0) { $0 << 8 | UInt64($1) } }
        self.init()
        let version = try number()
        compacted = try number()
        self.version = compacted
        while self.version < version { append(try take(number())) }
        for _ in 0..<(try number()) {
            let key = try take(number())
            rows.set(key, to: try take(number()))
        }
    }
}

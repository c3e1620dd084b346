import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// A large tree, exported in pages into a file, imported from it into another database, and exported again: the growth
/// of the stack's memory meanwhile, the duration, and whether the two exports are equal byte for byte.
struct MovingBench: Sendable {
    private static let growthMax = 200.0
    /// As `hato-messages import` sends them. With pages of 10,000, which are prepared beside the writer, an import took
    /// half as long again, and six times the memory.
    private static let pageRows = 1_000.0

    var settings: BenchSettings
    var stack: TestStack

    func rows() async throws -> Table {
        let bench = self
        let (table, digests) = try await Blocking.run { try bench.measured() }
        guard digests.0 == digests.1 else {
            throw BenchError("exported \(digests.0), and after the import \(digests.1)")
        }
        Progress.say("both exports: \(digests.0)")
        return table
    }

    /// A hash of the rows of an export, in 64 bits (as FNV-1a, eight bytes at a time), independent of the sizes of its
    /// pages.
    private struct Digest: Equatable, CustomStringConvertible {
        private var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        private var pending: UInt64 = 0
        private(set) var bytes = 0

        mutating func add(_ part: ArraySlice<UInt8>) {
            for byte in part {
                pending = pending << 8 | UInt64(byte)
                bytes += 1
                if bytes.isMultiple(of: 8) { hash = (hash ^ pending) &* 0x100_0000_01b3 ^ hash >> 47 }
            }
        }

        var description: String {
            "\(Figure.text(Double(bytes))) bytes of rows, hash \(String(hash ^ pending, radix: 16))"
        }
    }

    private func measured() throws -> (Table, (Digest, Digest)) {
        let port = stack.configuration(.messages).port
        let load = MessageLoad(
            port: port, administratorKey: stack.administratorKey, rooms: .many(2_000, large: "hall"))
        let tree = try load.write(.max, bytesMax: settings.bytes)
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("hato-bench-\(UUID().uuidString)").path
        guard let file = fopen(path, "w+") else { throw BenchError("cannot write \(path)") }
        defer {
            fclose(file)
            unlink(path)
        }
        let socket = try RawSocket(port: port, signedInWith: stack.administratorKey)
        defer { socket.close() }
        try sayStore(socket)
        let name = "a tree of \(Figure.text(Double(tree.bytes >> 20))) MB"
        var table = Table()
        var first = Digest()
        try watched("export \(name)", &table) {
            first = try export(from: nil, socket) { page in
                var length = UInt32(page.count)
                let isBegun = fwrite(&length, 4, 1, file) == 1
                guard isBegun, page.withUnsafeBytes({ fwrite($0.baseAddress, 1, $0.count, file) }) == page.count else {
                    throw BenchError("cannot write \(path)")
                }
            }
        }
        try sayStore(socket)
        rewind(file)
        try socket.call(Messages.Databases.Create.method, EncodedJSON(["database": "copy"]))
        try watched("import \(name)", &table) { try importPages(of: file, socket) }
        var second = Digest()
        try sayStore(socket)
        try watched("export \(name) again", &table) { second = try export(from: "copy", socket) { _ in } }
        return (table, (first, second))
    }

    /// Two rows: the seconds that `body` takes, and the growth of the stack's memory meanwhile.
    private func watched(_ what: String, _ table: inout Table, _ body: () throws -> Void) throws {
        let watch = try MemoryWatch(stack.processIdentifier)
        let start = Clock.now()
        try body()
        let seconds = Double(Clock.now() - start) / 1e9
        let growth = Double(watch.growth()) / Double(1 << 20)
        table.add(Table.Row(what: "moving: \(what)", value: seconds, unit: "s"))
        let before = Figure.text(Double(watch.first >> 20))
        table.add(
            Table.Row(
                what: "moving: memory beside \(before) MB, \(what)", value: growth, unit: "MB",
                goals: [Goal(.value, .atMost(Self.growthMax))]))
    }

    /// The part of the memory that belongs to the store, which has limits of its own.
    private func sayStore(_ socket: RawSocket) throws {
        let answer = try JSONParser.parse(Array(try socket.call(Messages.Stats.method).utf8))
        let store = answer.object?["result"]?.object?["store"]?.object
        let figures = ["block_cache_bytes", "memtable_bytes", "table_reader_bytes"].map { name in
            "\(name) \(Figure.text(((store?["rocksdb.\(name)"]?.number ?? 0) / 1_048_576).rounded())) MB"
        }
        Progress.say("  the store: \(figures.joined(separator: ", "))")
    }

    // MARK: Pages

    /// Returns the rows of each page as they were sent: an array as text.
    private func export(
        from database: String?, _ socket: RawSocket, _ take: (ArraySlice<UInt8>) throws -> Void
    ) throws -> Digest {
        let reader = LineReader(socket)
        var digest = Digest()
        var (snapshot, after) = (String?.none, String?.none)
        repeat {
            var params: JSONObject = ["path": "/chats", "limit": .number(Self.pageRows)]
            if let database { params.append("database", .string(database)) }
            if let snapshot { params.append("snapshot", .string(snapshot)) }
            if let after { params.append("after", .string(after)) }
            try socket.send(ChatRequests.line(Messages.Export.method, EncodedJSON(.object(params)).bytes))
            let line = try reader.result(of: Messages.Export.method)
            let rows = try Self.rows(in: line)
            if rows.count > 2 {
                if digest.bytes > 0 { digest.add(Array(",".utf8)[...]) }
                digest.add(rows.dropFirst().dropLast())
                try take(rows)
            }
            let others = try JSONParser.parse(
                Array(line[..<rows.startIndex]) + Array("[]".utf8) + Array(line[rows.endIndex...]))
            let result = others.object?["result"]?.object
            (snapshot, after) = (result?["snapshot"]?.string, result?["after"]?.string)
        } while after != nil
        return digest
    }

    /// The array of rows in a response. At most a path follows it, and no path has a bracket in it.
    private static func rows(in line: [UInt8]) throws -> ArraySlice<UInt8> {
        let name = Array("\"rows\":".utf8)
        let begin = line.indices.prefix(200).first { line[$0...].starts(with: name) }
        guard let begin, let end = line.lastIndex(of: UInt8(ascii: "]")) else {
            throw BenchError("no rows in \(String(decoding: line.prefix(200), as: UTF8.self))")
        }
        return line[begin + name.count...end]
    }

    private func importPages(of file: UnsafeMutablePointer<FILE>, _ socket: RawSocket) throws {
        var calls = PipelinedCalls(socket, Messages.Import.method, inFlightMax: 4)
        var length = UInt32(0)
        while fread(&length, 4, 1, file) == 1 {
            let head = Array("{\"database\":\"copy\",\"path\":\"/chats\",\"rows\":".utf8)
            var page = [UInt8](repeating: 0, count: Int(length))
            guard page.withUnsafeMutableBytes({ fread($0.baseAddress, 1, $0.count, file) }) == page.count else {
                throw BenchError("the file of pages is cut")
            }
            try calls.send(ChatRequests.line(Messages.Import.method, head + page + [UInt8(ascii: "}")]))
        }
        try calls.finish()
    }
}

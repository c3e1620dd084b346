import Foundation

/// A table of RocksDB, to be damaged in a chosen part: first the blocks of rows, then the filter, then the metadata of
/// both.
struct TableFile {
    let url: URL
    let sound: Data

    init(_ path: String) throws {
        url = URL(fileURLWithPath: path)
        sound = try Data(contentsOf: url)
    }

    static func all(in folder: String) throws -> [TableFile] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".sst") }.sorted()
            .map { try TableFile("\(folder)/\($0)") }
    }

    var name: String { url.lastPathComponent }

    /// Empty when it has none. In the metadata its name is followed by its offset and its length: seven bits a byte,
    /// the lowest first.
    var filter: Range<Int> {
        guard let name = sound.range(of: Data("fullfilter.rocksdb.BuiltinBloomFilter".utf8)) else { return 0..<0 }
        var (numbers, number, shift) = ([Int](), 0, 0)
        for byte in sound[name.upperBound...].prefix(10) {
            number |= Int(byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 {
                numbers.append(number)
                (number, shift) = (0, 0)
            }
        }
        return numbers[0]..<numbers[0] + numbers[1]
    }

    /// Writes in place: the store may have the file open.
    func flipBit(at place: Int) throws { try write(sound[place] ^ 0x04, at: place) }

    func mend(at place: Int) throws { try write(sound[place], at: place) }

    private func write(_ byte: UInt8, at place: Int) throws {
        let handle = try FileHandle(forWritingTo: url)
        try handle.seek(toOffset: UInt64(place))
        try handle.write(contentsOf: [byte])
        try handle.close()
    }
}

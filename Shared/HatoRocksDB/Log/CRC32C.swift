/// The checksum of RocksDB's log: CRC-32C (RFC 3720, appendix B.4), "masked" because what it is of may hold checksums.
enum CRC32C {
    private static let table: [UInt32] = (0..<256).map { start in
        (0..<8).reduce(UInt32(start)) { crc, _ in crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
    }

    static func masked(of bytes: ArraySlice<UInt8>) -> UInt32 {
        let crc = table.withUnsafeBufferPointer { table in
            ~bytes.reduce(UInt32.max) { crc, byte in table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
        }
        return ((crc >> 15) | (crc << 17)) &+ 0xA282_EAD8
    }
}

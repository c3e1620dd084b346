/// The checksum of RocksDB's log: CRC-32C (RFC 3720, appendix B.4), "masked" because the checked bytes may hold
/// checksums.
enum CRC32C {
    private static let table: [UInt32] = (0..<256).map { start in
        (0..<8).reduce(UInt32(start)) { crc, _ in crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
    }

    static func masked(of bytes: ArraySlice<UInt8>) -> UInt32 { mask(plain(of: bytes)) }

    /// Whether `sum` is the checksum of some prefix of `bytes`.
    static func isMasked(_ sum: UInt32, ofStartOf bytes: ArraySlice<UInt8>) -> Bool {
        let wanted = ~unmask(sum)
        return table.withUnsafeBufferPointer { table in
            var crc = UInt32.max
            return bytes.contains { byte in
                crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8)
                return crc == wanted
            }
        }
    }

    /// Whether `sum` is the checksum of `bytes` after one flipped bit, in the checksum or in the bytes.
    static func isMasked(_ sum: UInt32, ofOneBitOff bytes: ArraySlice<UInt8>) -> Bool {
        (masked(of: bytes) ^ sum).nonzeroBitCount == 1 || flippedByte(sum, of: bytes) != nil
    }

    /// The position in `bytes` at which one bit must be flipped for `sum` to be their checksum; nil when that is not
    /// enough.
    static func flippedByte(_ sum: UInt32, of bytes: ArraySlice<UInt8>) -> Int? {
        // The effect of a flipped bit on the checksum depends only on the number of bytes after it.
        let difference = plain(of: bytes) ^ unmask(sum)
        return table.withUnsafeBufferPointer { table in
            var effects = (0..<8).map { table[1 << $0] }
            return bytes.indices.reversed().first { _ in
                if effects.contains(difference) { return true }
                for bit in 0..<8 { effects[bit] = table[Int(effects[bit] & 0xFF)] ^ (effects[bit] >> 8) }
                return false
            }
        }
    }

    private static func plain(of bytes: ArraySlice<UInt8>) -> UInt32 {
        table.withUnsafeBufferPointer { table in
            bytes.withUnsafeBufferPointer { bytes in
                var crc = UInt32.max
                for byte in bytes { crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
                return ~crc
            }
        }
    }

    private static func mask(_ crc: UInt32) -> UInt32 { ((crc >> 15) | (crc << 17)) &+ 0xA282_EAD8 }

    private static func unmask(_ sum: UInt32) -> UInt32 {
        let turned = sum &- 0xA282_EAD8
        return (turned >> 17) | (turned << 15)
    }
}

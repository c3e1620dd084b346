import Crypto
import CryptoExtras
import Foundation

/// Hashes of passwords as auth makes them in production (scrypt, N = 2^14, r = 8, p = 5), without auth.
enum HashLoad {
    static let cores = ProcessInfo.processInfo.activeProcessorCount
    /// The memory of one hash.
    static let bytes = 128 * 8 << 14

    /// Hashes a second on so many threads at once.
    static func rate(threads: Int, seconds: Double) async throws -> Double {
        try await withThrowingTaskGroup(of: Double.self) { group in
            for _ in 0..<threads {
                group.addTask { try await Blocking.run { try rate(seconds: seconds) } }
            }
            return try await group.reduce(0, +)
        }
    }

    private static func rate(seconds: Double) throws -> Double {
        #if os(Linux)
            // As the hashing threads of auth: PRIO_PROCESS, which on Linux means the calling thread only.
            _ = setpriority(0, 0, 5)
        #endif
        let (password, salt) = (Array(AuthRequests.password.utf8), [UInt8](repeating: 7, count: 16))
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        var count = 0
        repeat {
            _ = try KDF.Scrypt.deriveKey(
                from: password, salt: salt, outputByteCount: 32, rounds: 1 << 14, blockSize: 8, parallelism: 5)
            count += 1
        } while Clock.now() < end
        return Double(count) / (Double(Clock.now() - start) / 1e9)
    }
}

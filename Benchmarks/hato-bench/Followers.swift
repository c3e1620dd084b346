import Foundation
import HatoModel
import HatoRPC
import Synchronization

/// Followers of the changes of a database, and a thread that reads and discards their notifications.
///
/// The thread alone uses the sockets until `close` has seen its end.
final class Followers: Sendable {
    private let sockets: [RawSocket]
    private let isOver = Atomic(false)
    private let failure = Mutex<(any Error)?>(nil)
    private let end = DispatchSemaphore(value: 0)

    /// - Parameter pattern: the pattern of each of them, e.g. `/chats/{chat}/messages/{id}`.
    init(_ count: Int, of pattern: String, port: Int, administratorKey: String) throws {
        let params: JSONObject = ["patterns": [.string(pattern)]]
        sockets = try (0..<count).map { _ in
            let socket = try RawSocket(port: port, signedInWith: administratorKey)
            try socket.call(Messages.Follow.method, EncodedJSON(.object(params)))
            return socket
        }
        Thread.detachNewThread { [self] in
            Thread.current.name = "followers"
            do { try read() } catch { failure.withLock { $0 = error } }
            end.signal()
        }
    }

    /// Throws when one of them was disconnected: the measurement then had fewer.
    func close() throws {
        isOver.store(true, ordering: .sequentiallyConsistent)
        end.wait()
        for socket in sockets { socket.close() }
        if let error = failure.withLock({ $0 }) { throw error }
    }

    private func read() throws {
        let set = try SocketSet(sockets)
        let buffer = ReadBuffer(bytes: 256 << 10)
        var ready: [Int] = []
        while !isOver.load(ordering: .sequentiallyConsistent) {
            try set.wait(&ready, milliseconds: 20)
            for index in ready { _ = try sockets[index].receive(into: buffer.bytes) }
        }
    }
}

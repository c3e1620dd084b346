import Foundation
import HatoModel
import HatoRPC
import Synchronization

/// Followers of the changes of a database, and a thread that takes what they are sent and looks at nothing of it.
///
/// `@unchecked Sendable`: the thread alone uses the sockets until `close` has seen its end.
final class Followers: @unchecked Sendable {
    private let sockets: [RawSocket]
    private let isOver = Atomic(false)
    private let taken = Atomic(0)
    private let end = DispatchSemaphore(value: 0)

    /// - Parameter pattern: what each of them follows, e.g. `/chats/{chat}/messages/{id}`.
    init(_ count: Int, of pattern: String, port: Int, administratorKey: String) throws {
        let params: JSONObject = ["patterns": [.string(pattern)]]
        sockets = try (0..<count).map { _ in
            let socket = try RawSocket(port: port, signedInWith: administratorKey)
            try socket.call(Messages.Follow.method, EncodedJSON(.object(params)))
            return socket
        }
        let set = try SocketSet(sockets)
        let reading = Reading(set: set, buffer: ReadBuffer(bytes: 256 << 10))
        Thread.detachNewThread { [self] in
            Thread.current.name = "followers"
            read(reading)
            end.signal()
        }
    }

    /// Moved to the thread, which alone uses it.
    private struct Reading: @unchecked Sendable {
        var set: SocketSet
        var buffer: ReadBuffer
    }

    /// Returns how many bytes they were sent.
    func close() -> Int {
        isOver.store(true, ordering: .sequentiallyConsistent)
        end.wait()
        for socket in sockets { socket.close() }
        return taken.load(ordering: .sequentiallyConsistent)
    }

    private func read(_ reading: Reading) {
        var ready: [Int] = []
        while !isOver.load(ordering: .sequentiallyConsistent) {
            do {
                try reading.set.wait(&ready, milliseconds: 20)
                for index in ready {
                    let bytes = try sockets[index].receive(into: reading.buffer.bytes)
                    taken.wrappingAdd(bytes, ordering: .relaxed)
                }
            } catch {
                Progress.say("followers: \(error)")
                return
            }
        }
    }
}

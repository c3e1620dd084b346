import Foundation

/// The data of a peer, line by line.
final class LineReader {
    private let socket: RawSocket
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)
    /// The range of the bytes that are not returned yet.
    private var unread = 0..<0

    init(_ socket: RawSocket) { self.socket = socket }

    /// Without its line end. Throws when the peer closes.
    func next() throws -> [UInt8] {
        var searched = 0
        while true {
            let fresh = unread.lowerBound + searched..<unread.upperBound
            let end = buffer.withUnsafeBytes {
                UnsafeRawBufferPointer(rebasing: $0[fresh]).place(of: UInt8(ascii: "\n"))
            }
            if let end {
                let line = Array(buffer[unread.lowerBound..<fresh.lowerBound + end])
                unread = fresh.lowerBound + end + 1..<unread.upperBound
                return line
            }
            searched = unread.count
            try fill()
        }
    }

    private func fill() throws {
        if unread.lowerBound > 0 {
            buffer.replaceSubrange(..<unread.count, with: Array(buffer[unread]))
            unread = 0..<unread.count
        }
        if unread.upperBound == buffer.count {
            buffer.append(contentsOf: [UInt8](repeating: 0, count: buffer.count))
        }
        unread = 0..<unread.upperBound + (try socket.receive(into: &buffer, at: unread.upperBound))
    }

    /// The line of a response, which must be a result.
    @discardableResult
    func result(of method: String) throws -> [UInt8] {
        let line = try next()
        // `{"jsonrpc":"2.0","id":1000,"result":…`
        guard line.count > RequestID.offset + RequestID.digits + 2,
            line[RequestID.offset + RequestID.digits + 2] == UInt8(ascii: "r")
        else { throw BenchError("\(method): \(String(decoding: line.prefix(1_000), as: UTF8.self))") }
        return line
    }
}

/// Calls that follow each other without waiting: the responses of earlier ones arrive meanwhile.
struct PipelinedCalls {
    private let socket: RawSocket
    private let reader: LineReader
    private let method: String
    private let inFlightMax: Int
    private var inFlight = 0

    init(_ socket: RawSocket, _ method: String, inFlightMax: Int) {
        self.socket = socket
        self.method = method
        self.inFlightMax = inFlightMax
        reader = LineReader(socket)
    }

    /// - Parameter line: a request of this method.
    mutating func send(_ line: [UInt8]) throws {
        if inFlight >= inFlightMax { try takeResponse() }
        try socket.send(line)
        inFlight += 1
    }

    /// Returns when all have a response.
    mutating func finish() throws {
        while inFlight > 0 { try takeResponse() }
    }

    private mutating func takeResponse() throws {
        try reader.result(of: method)
        inFlight -= 1
    }
}

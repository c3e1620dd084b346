import HatoModel
import NIOCore

/// What a line from a service says to a wire.
enum WireLine {
    case response(RPCWireResponse)
    case notification(RPCWireNotification)
    /// An error of no request in particular: for the whole connection, which ends.
    case refusal(RPCError)
}

/// A line that the protocol does not have: what the service sent, in words.
struct WireLineProblem: Error {
    var words: String

    init(_ words: String) { self.words = words }
}

/// Reads a line from a service, only as deep as a wire must know it.
struct WireLineReader {
    private let line: ByteBuffer
    private let nestingMax: Int

    init(_ line: ByteBuffer, nestingMax: Int) {
        self.line = line
        self.nestingMax = nestingMax
    }

    /// Throws `WireLineProblem`, or `JSONError`.
    func read() throws -> WireLine {
        let envelope = try ServerEnvelope.read(line.readableBytesUInt8Span, nestingMax: nestingMax)
        switch envelope.id {
        case .number(let id): return .response(try response(id, envelope))
        case .null:
            guard let text = envelope.error, envelope.result == nil, envelope.method == nil else {
                throw WireLineProblem("neither an error nor a response, without an id")
            }
            return .refusal(try error(text))
        case .absent: return .notification(try notification(envelope))
        case .other: throw WireLineProblem("an id that no request has")
        }
    }

    private func response(_ id: UInt64, _ envelope: ServerEnvelope) throws -> RPCWireResponse {
        guard envelope.method == nil else { throw WireLineProblem("a request") }
        switch (envelope.result, envelope.error) {
        case (let result?, nil): return RPCWireResponse(id: id, outcome: .result(text(result)))
        case (nil, let error?):
            return RPCWireResponse(id: id, outcome: .error(try self.error(error), text(error)))
        case (nil, nil): throw WireLineProblem("a response with neither result nor error")
        case (.some, .some): throw WireLineProblem("a response with both result and error")
        }
    }

    private func notification(_ envelope: ServerEnvelope) throws -> RPCWireNotification {
        guard envelope.result == nil, envelope.error == nil else {
            throw WireLineProblem("a response without an id")
        }
        guard let method = envelope.method else { throw WireLineProblem("neither a response nor a notification") }
        guard let range = envelope.members.first(where: { $0.name == "subscription" })?.text,
            let subscription = try string(range)
        else { throw WireLineProblem("a notification without a subscription") }
        let members = envelope.members.filter { $0.name != "subscription" }.map {
            RPCWireNotification.Member(name: $0.name, text: text($0.text))
        }
        return RPCWireNotification(method: method, subscription: subscription, members: members)
    }

    private func error(_ range: Range<Int>) throws -> RPCError {
        var scanner = JSONScanner(at: range.lowerBound, depth: nestingMax, memoryMax: Self.errorMemoryMax)
        guard let error = RPCError(json: try scanner.value(line.readableBytesUInt8Span)) else {
            throw WireLineProblem("an error without a code")
        }
        return error
    }

    /// Nil when it is no string.
    private func string(_ range: Range<Int>) throws -> String? {
        var scanner = JSONScanner(at: range.lowerBound, depth: nestingMax)
        guard try scanner.kind(line.readableBytesUInt8Span) == .string else { return nil }
        return try scanner.string(line.readableBytesUInt8Span)
    }

    private func text(_ range: Range<Int>) -> ByteBuffer {
        line.getSlice(at: line.readerIndex + range.lowerBound, length: range.count) ?? ByteBuffer()
    }

    /// What the values of an error take; a refused condition brings a value of up to 1 MiB with it.
    private static let errorMemoryMax = 64 << 20
}

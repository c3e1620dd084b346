import HatoModel

/// The responses of a batch, gathered in the order of its entries. Pure.
struct BatchResponse: Hashable, Sendable {
    private var responses: [[UInt8]?]
    private var missing: Int
    /// Of the whole as it stands.
    private(set) var byteCount = 2
    private let bytesMax: Int
    /// Whether the process has reserved the memory of the largest response for it.
    var isReserved = false
    /// Whether a read of it was refused because it would have had to wait for memory.
    var isRefusedMemory = false
    /// Whether a response did not fit. What is asked for nothing but its response need not be done from then on.
    private(set) var isFull = false

    init(count: Int, bytesMax: Int) {
        responses = Array(repeating: nil, count: count)
        missing = count
        self.bytesMax = bytesMax
    }

    var isDone: Bool { missing == 0 }

    /// A response that would make the whole too big is replaced by an error; its id is taken over from its own text.
    ///
    /// - Returns: the bytes by which the whole grew.
    mutating func set(_ entry: Int, _ response: [UInt8]?) -> Int {
        missing -= 1
        guard let response else { return 0 }
        let fits = byteCount + response.count < bytesMax
        if !fits { isFull = true }
        let kept = fits ? response : Self.tooBig(bytesMax, insteadOf: response)
        byteCount += kept.count + 1
        responses[entry] = kept
        return kept.count + 1
    }

    /// Nil when there is no response: all entries were notifications.
    var bytes: [UInt8]? {
        guard responses.contains(where: { $0 != nil }) else { return nil }
        var all: [UInt8] = []
        all.reserveCapacity(byteCount)
        all.append(UInt8(ascii: "["))
        for response in responses {
            guard let response else { continue }
            if all.count > 1 { all.append(UInt8(ascii: ",")) }
            all.append(contentsOf: response)
        }
        all.append(UInt8(ascii: "]"))
        return all
    }

    private static func tooBig(_ limit: Int, insteadOf response: [UInt8]) -> [UInt8] {
        var scanner = JSONScanner(at: Response.idOffset)
        let id = (try? scanner.skip(response.span)).map { String(decoding: response[$0], as: UTF8.self) }
        return Response.bytes(id: id ?? "null", error: RPCError.tooBig(limit))
    }
}

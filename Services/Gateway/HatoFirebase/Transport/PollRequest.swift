/// A request for `/.lp` (spec realtime-database §8.9), read from the query of its address.
public enum PollRequest: Sendable, Hashable {
    /// Begins a session; `callback` is the number of the client's callbacks.
    case start(callback: Int)
    /// Fetches messages, and brings segments of those of the client.
    case poll(id: String, password: String, Poll)
    /// Loads the page that reports that its page has gone.
    case leavingPage(id: String, password: String)
    /// The page has gone.
    case leave(id: String, password: String)

    /// What a poll says.
    public struct Poll: Sendable, Hashable {
        /// The number that the client gives its requests: the same one only for a request that is repeated.
        public var serial: Int?
        /// Segments of messages.
        public var segments: [SegmentAssembler.Segment]

        public init(serial: Int? = nil, segments: [SegmentAssembler.Segment] = []) {
            self.serial = serial
            self.segments = segments
        }

        /// How many bytes it takes in memory.
        public var bytes: Int {
            segments.reduce(ReceivedMessage.besidesBytes) { $0 + ReceivedMessage.besidesBytes + $1.data.count }
        }
    }

    /// Why a request is refused.
    public enum Failure: Error, Sendable, Hashable {
        /// A parameter is missing or wrong.
        case wrong(String)
    }

    /// - Parameter target: of the request, with its query; of a name that comes twice, the first counts.
    ///
    /// Throws `Failure`.
    public init(target: String) throws(Failure) {
        let values = TargetParameters(target: target)
        if values["start"] == "t" {
            guard let text = values["cb"], let callback = Self.number(text) else { throw .wrong("cb") }
            self = .start(callback: callback)
            return
        }
        guard let id = values["id"] else { throw .wrong("id") }
        guard let password = values["pw"] else { throw .wrong("pw") }
        if values["dframe"] == "t" {
            self = .leavingPage(id: id, password: password)
        } else if values["disconn"] == "t" {
            self = .leave(id: id, password: password)
        } else {
            let serial = values["ser"].flatMap(Self.number(_:))
            self = .poll(id: id, password: password, Poll(serial: serial, segments: try Self.segments(values)))
        }
    }

    private static func segments(_ values: TargetParameters) throws(Failure) -> [SegmentAssembler.Segment] {
        var segments: [SegmentAssembler.Segment] = []
        while let text = values["seg\(segments.count)"] {
            let index = segments.count
            guard let number = number(text) else { throw .wrong("seg\(index)") }
            guard let count = values["ts\(index)"].flatMap(number(_:)) else { throw .wrong("ts\(index)") }
            guard let data = values["d\(index)"] else { throw .wrong("d\(index)") }
            segments.append(SegmentAssembler.Segment(number: number, count: count, data: Array(data.utf8)))
        }
        // Dropped, one that has none before it would keep all later messages waiting.
        guard values.count(of: "seg") == segments.count else { throw .wrong("seg\(segments.count)") }
        return segments
    }

    /// A number of digits only, which may be written into a script.
    private static func number(_ text: String) -> Int? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }
}

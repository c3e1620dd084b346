struct BenchSettings: Sendable {
    static let usage = """
        hato-bench [--only PART,…] [--seconds N] [--windows N] [--room-size N] [--messages N] [--bytes N]
                   [--accounts N] [--devices N] [--waiting N] [--json FILE]
          --only       \(names(Bench.Part.allCases.filter(\.isUsual))) (all of these), and, when named,
                       large-room (15 minutes and 10 GB of disk), moving (15 minutes and 6 GB) and
                       push-memory (10 minutes and 2 GB)
          --seconds    the length of one window (2)
          --windows    each figure is the median of so many windows (5)
          --room-size  messages in the room that is read from (100000)
          --messages   messages of all rooms of large-room, a tenth of them in one (10000000)
          --bytes      of the tree of moving, as JSON (1000000000)
          --accounts   of auth that are imported (100000)
          --devices    of one message of push (10000)
          --waiting    deliveries of push-memory that wait (1000000)
          --json       writes the table as JSON too
        """

    private static func names(_ parts: [Bench.Part]) -> String {
        parts.map(\.rawValue).joined(separator: ", ")
    }

    var parts = Set(Bench.Part.allCases.filter(\.isUsual))
    /// The length of one window.
    var seconds = 2.0
    /// Each figure is the median of so many windows.
    var windows = 5
    var roomSize = 100_000
    var messages = 10_000_000
    var bytes = 1_000_000_000
    var accounts = 100_000
    var devices = 10_000
    var waiting = 1_000_000
    var jsonPath: String?

    /// The settings of the command line; nil if it does not have the form of `usage`.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--only":
                let named = value.split(separator: ",").map { Bench.Part(rawValue: String($0)) }
                parts = Set(named.compactMap { $0 })
                if parts.count != named.count { return nil }
            case "--seconds":
                guard let seconds = Double(value), seconds > 0 else { return nil }
                self.seconds = seconds
            case "--windows":
                guard let windows = Int(value), windows > 0 else { return nil }
                self.windows = windows
            case "--room-size":
                guard let roomSize = Int(value), roomSize >= 1_000 else { return nil }
                self.roomSize = roomSize
            case "--messages":
                guard let messages = Int(value), messages >= 10_000 else { return nil }
                self.messages = messages
            case "--bytes":
                guard let bytes = Int(value), bytes >= 1_000_000 else { return nil }
                self.bytes = bytes
            case "--accounts":
                guard let accounts = Int(value), accounts >= 1_000 else { return nil }
                self.accounts = accounts
            case "--devices":
                guard let devices = Int(value), 10...10_000 ~= devices else { return nil }
                self.devices = devices
            case "--waiting":
                guard let waiting = Int(value), 10_000...100_000_000 ~= waiting else { return nil }
                self.waiting = waiting
            case "--json": jsonPath = value
            default: return nil
            }
        }
    }
}

import HatoModel

/// The listens of one session: which query of a client is which native subscription.
///
/// A listen is known by its path and its canonical query as long as the client wants it; by its number from its first
/// call on; by its subscription once the service has opened it. One that the client ends, or replaces by an equal one,
/// before the service has opened it stays until the service has.
struct ListenTable {
    /// One listen.
    struct Listen {
        /// The path as JSON text without quotes and without the slash at its start.
        let path: [UInt8]
        /// The canonical text of the query; empty for the default one.
        let query: String
        let tag: Int64?
        fileprivate let key: [UInt8]
        fileprivate var stage = Stage.opening
        fileprivate var cost: Int { 2 * key.count + ListenTable.costOfOne }
    }

    /// A response that is sent behind the first push of its listen.
    struct HeldResponse {
        let ticket: Int
        /// The number of the request.
        let number: Int64
        let text: [UInt8]
    }

    fileprivate enum Stage {
        case opening
        /// The client has ended it meanwhile.
        case unwanted
        case open(subscription: String, HeldResponse?)
    }

    /// What a listen was when it ended.
    enum Ended {
        /// The service is opening it: it must be ended when it has a subscription.
        case opening
        case open(subscription: String, HeldResponse?)
    }

    /// Bytes that a listen takes beside its texts.
    fileprivate static let costOfOne = 256

    private let countMax: Int
    private let bytesMax: Int
    private var listens: [Int: Listen] = [:]
    private var numbers: [[UInt8]: Int] = [:]
    private var subscriptions: [String: Int] = [:]
    private var nextNumber = 0
    /// About the bytes that all listens take.
    private(set) var bytes = 0

    init(_ limits: SessionLimits) {
        countMax = limits.listensMax
        bytesMax = limits.listenBytesMax
    }

    /// Listens that the service has opened or is opening.
    var count: Int { listens.count }

    /// Begins a listen and returns its number; nil when there are too many. An equal one must have been ended.
    mutating func begin(_ wanted: SessionRequest.Listen) -> Int? {
        let path = Self.text(of: wanted.path)
        let listen = Listen(
            path: path, query: wanted.query.canonical, tag: wanted.tag, key: Self.key(path, wanted.query.canonical))
        guard listens.count < countMax, bytes + listen.cost <= bytesMax else { return nil }
        nextNumber += 1
        listens[nextNumber] = listen
        numbers[listen.key] = nextNumber
        bytes += listen.cost
        return nextNumber
    }

    /// The service has opened a listen. False when the client does not want it any more: then it has left the table.
    mutating func opened(_ number: Int, as subscription: String, holding response: HeldResponse?) -> Bool {
        guard let listen = listens[number] else { return false }
        if case .unwanted = listen.stage {
            remove(number)
            return false
        }
        listens[number]?.stage = .open(subscription: subscription, response)
        subscriptions[subscription] = number
        return true
    }

    /// The service has refused to open a listen.
    mutating func refused(_ number: Int) { remove(number) }

    /// The client ends a listen, or begins an equal one; nil when there is none.
    mutating func end(_ path: TreePath, _ query: WireQuery) -> Ended? {
        let key = Self.key(Self.text(of: path), query.canonical)
        guard let number = numbers[key], let listen = listens[number] else { return nil }
        switch listen.stage {
        case .open(let subscription, let response):
            remove(number)
            return .open(subscription: subscription, response)
        case .opening, .unwanted:
            listens[number]?.stage = .unwanted
            numbers[key] = nil
            return .opening
        }
    }

    /// The listen with this subscription.
    func listen(_ subscription: String) -> Listen? { subscriptions[subscription].flatMap { listens[$0] } }

    /// The first event of a listen has come: returns the response that waited for it.
    mutating func takeHeldResponse(_ subscription: String) -> HeldResponse? {
        guard let number = subscriptions[subscription], case .open(_, let response?)? = listens[number]?.stage else {
            return nil
        }
        listens[number]?.stage = .open(subscription: subscription, nil)
        return response
    }

    /// The service has ended a listen.
    mutating func cancelled(_ subscription: String) -> (listen: Listen, held: HeldResponse?)? {
        guard let number = subscriptions[subscription], let listen = listens[number] else { return nil }
        let held = takeHeldResponse(subscription)
        remove(number)
        return (listen, held)
    }

    private mutating func remove(_ number: Int) {
        guard let listen = listens.removeValue(forKey: number) else { return }
        bytes -= listen.cost
        if numbers[listen.key] == number { numbers[listen.key] = nil }
        if case .open(let subscription, _) = listen.stage { subscriptions[subscription] = nil }
    }

    private static func text(of path: TreePath) -> [UInt8] {
        var writer = JSONWriter()
        path.write(into: &writer)
        // Without the quotes and the slash.
        return Array(writer.bytes.dropFirst(2).dropLast())
    }

    /// No byte of a path and of a query is 0.
    private static func key(_ path: [UInt8], _ query: String) -> [UInt8] { path + [0] + Array(query.utf8) }
}

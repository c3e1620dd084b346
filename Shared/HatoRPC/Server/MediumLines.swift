/// Decides which lines grow to a medium length where nothing fits, in memory that long lines leave to them. Pure.
///
/// How long a line becomes is not known before its end. So each of a few lines gets the memory of the longest medium
/// line, one of each client, clients in the order in which they came. A line that becomes longer waits in that memory
/// for more, and one that comes slowly keeps it, until another client needs the memory: then the newest of these lines
/// is refused, one at a time.
///
/// Clients whose last line was a medium one are first; every second time, it is the one that has waited longest.
/// Clients with a line that became longer, came slowly or did not come to its end are last until some lines after it
/// have come quickly, and have no other line refused.
struct MediumLines {
    enum Decision: Hashable {
        /// The line may grow to `capacity`.
        case grow(UInt64)
        /// The line is to be dropped.
        case refuse(UInt64)
    }

    private struct Client {
        /// The lines of the client that wait, by turn.
        var waiting = IndexedHeap<UInt64, UInt64>()
        /// The one that grows, or has grown.
        var exempt: UInt64?
    }

    /// The memory of a line that grows, or has grown.
    private struct Place {
        var client: String
        /// The line became long, or comes slowly.
        var isOverdue = false
    }

    /// By the last lines of a client.
    private enum Group: Int {
        case first, unknown, last
    }

    /// The group of a client, and its first turn.
    private struct Rank: Comparable {
        var group: Group
        var turn: UInt64

        static func < (left: Rank, right: Rank) -> Bool {
            (left.group.rawValue, left.turn) < (right.group.rawValue, right.turn)
        }
    }

    /// The memory of the longest medium line.
    let capacity: Int
    private let countMax: Int
    private var clients: [String: Client] = [:]
    /// Clients with lines that wait, and none that grows; by turn alone without those that are last.
    private var turns = IndexedHeap<String, Rank>()
    private var arrivals = IndexedHeap<String, UInt64>()
    private var isTurnOfArrivals = false
    /// The lines that grow, or have grown.
    private var exempt: [UInt64: Place] = [:]
    /// Those of them that are overdue, the newest first.
    private var overdue = IndexedHeap<UInt64, Int>()
    private var overdueCount = 0
    /// The line that is being refused: its memory is free when it has ended.
    private var refused: UInt64?
    /// How many lines of a client have to come quickly before it is first.
    private var missing = RecentValues<String, Int>()

    /// After a line that was overdue, or did not come to its end.
    private static let missingMax = 8

    init(capacity: Int, countMax: Int) {
        self.capacity = capacity
        self.countMax = countMax
    }

    func isMedium(_ capacity: Int) -> Bool { capacity <= self.capacity }

    func isExempt(_ connection: UInt64) -> Bool { exempt[connection] != nil }

    /// A line waits for a buffer of `capacity` bytes.
    mutating func claimed(_ capacity: Int, by connection: UInt64, of client: String, turn: UInt64) {
        if isMedium(capacity) {
            clients[client, default: Client()].waiting.insert(connection, turn)
        } else {
            clients[client]?.waiting.remove(connection)
            missing[client] = Self.missingMax
            isOverdue(connection)
        }
        lookAgain(client)
    }

    /// The line comes slowly.
    mutating func isOverdue(_ connection: UInt64) {
        guard let place = exempt[connection], !place.isOverdue else { return }
        exempt[connection]?.isOverdue = true
        missing[place.client] = Self.missingMax
        overdueCount += 1
        overdue.insert(connection, -overdueCount)
    }

    /// - Parameter isWithinShare: whether a client may have `capacity` bytes more.
    mutating func next(_ isWithinShare: (String) -> Bool) -> Decision? {
        while let name = nextClient, let connection = clients[name]?.waiting.first?.key {
            guard isWithinShare(name) else {
                // It waits for what it holds itself.
                removeTurn(name)
                continue
            }
            guard exempt.count >= countMax else {
                isTurnOfArrivals.toggle()
                exempt[connection] = Place(client: name)
                clients[name]?.exempt = connection
                lookAgain(name)
                return .grow(connection)
            }
            guard refused == nil, group(of: name) != .last, let newest = overdue.first?.key else { return nil }
            overdue.remove(newest)
            refused = newest
            return .refuse(newest)
        }
        return nil
    }

    private var nextClient: String? { (isTurnOfArrivals ? arrivals.first?.key : nil) ?? turns.first?.key }

    /// The line has a buffer of `capacity` bytes, whatever it waited for.
    mutating func granted(_ capacity: Int, to connection: UInt64, of client: String) {
        clients[client]?.waiting.remove(connection)
        if !isMedium(capacity) { release(connection) }
        lookAgain(client)
    }

    /// The line is complete, and is still to be taken: it is refused no more, even if it was about to be.
    mutating func completed(_ connection: UInt64) {
        overdue.remove(connection)
        if refused == connection { refused = nil }
    }

    /// The line is complete, or is dropped.
    ///
    /// - Parameter isMedium: whether it is complete, and no longer than a medium line.
    mutating func ended(_ connection: UInt64, of client: String, isMedium: Bool) {
        clients[client]?.waiting.remove(connection)
        let place = exempt[connection]
        if place != nil, !isMedium {
            missing[client] = Self.missingMax
        } else if isMedium, place?.isOverdue != true {
            missing[client] = max(0, (missing[client] ?? 0) - 1)
        }
        if refused == connection { refused = nil }
        release(connection)
        lookAgain(client)
    }

    private mutating func release(_ connection: UInt64) {
        guard let client = exempt.removeValue(forKey: connection)?.client else { return }
        overdue.remove(connection)
        clients[client]?.exempt = nil
        lookAgain(client)
    }

    /// The client may hold less.
    mutating func lookAgain(_ name: String) {
        removeTurn(name)
        guard let client = clients[name], client.exempt == nil else { return }
        guard let next = client.waiting.first else {
            clients[name] = nil
            return
        }
        let group = group(of: name)
        turns.insert(name, Rank(group: group, turn: next.priority))
        if group != .last { arrivals.insert(name, next.priority) }
    }

    private func group(of name: String) -> Group {
        guard let missing = missing[name] else { return .unknown }
        return missing == 0 ? .first : .last
    }

    private mutating func removeTurn(_ name: String) {
        turns.remove(name)
        arrivals.remove(name)
    }
}

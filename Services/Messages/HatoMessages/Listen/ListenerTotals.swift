import HatoModel
import HatoTree

/// How many listeners there are and what they take in memory (`ListenerCost`), in all and by client, and whether there
/// may be more. Pure.
///
/// A client may take more while as much stays free as it then has, the first rule of `ProcessBudget`. The last quarter
/// of the memory is left to the first few listeners of each client (`firstBytesMax`): many clients that take as much as
/// they can leave it to hundreds of others.
///
/// What listeners share, a topic with the window of its query or an authorisation, counts once in all, and in full for
/// the client of each of them.
struct ListenerTotals {
    private struct Held {
        var count = 0
        var bytes = 0
    }

    private let limits: MessagesLimits
    private(set) var count = 0
    private var topicBytes = 0
    /// By `client(of:)`.
    private var clients: [String: Held] = [:]

    init(_ limits: MessagesLimits) { self.limits = limits }

    /// What all take; without the authorisations, whose bytes `ReadAuthorisations` counts.
    var bytes: Int { count * ListenerCost.listener + topicBytes }

    /// For whom a listener is counted: its client, or all administrators together, who have no limit of their own.
    func client(of listener: Listener) -> String { listener.opening.client ?? "administrators" }

    /// Whose listeners take the most.
    var largestClient: String? {
        clients.max { ($0.value.bytes, $0.key) < ($1.value.bytes, $1.key) }?.key
    }

    /// What the listeners of a client take.
    func bytes(of client: String) -> Int { clients[client]?.bytes ?? 0 }

    // MARK: Before a listener begins

    /// What is left to the first listeners of each client.
    private var leftToFirst: Int { limits.listenersServiceBytesMax / 4 }

    /// What the first listeners of a client take at most: of a screen or two of an app.
    private var firstBytesMax: Int { min(16 << 10, limits.listenersServiceBytesMax / 256) }

    private func isFirst(_ wanted: Int, of client: String) -> Bool { bytes(of: client) + wanted <= firstBytesMax }

    /// - Parameter siblings: the subscriptions that the connection has.
    /// - Throws: `tooManyListeners`.
    func check(_ opening: Listener.Opening, siblings: Int) throws(MessagesError) {
        guard count < limits.listenersMax else { throw .tooManyListeners(max: limits.listenersMax, of: .service) }
        guard siblings < limits.listenersPerConnectionMax else {
            throw .tooManyListeners(max: limits.listenersPerConnectionMax, of: .connection)
        }
        if let client = opening.client, clients[client]?.count ?? 0 >= limits.listenersPerClientMax {
            throw .tooManyListeners(max: limits.listenersPerClientMax, of: .client)
        }
    }

    /// The rules were not asked yet: what they look at is counted when they were.
    ///
    /// - Parameters:
    ///   - topic: nil when there is none of that key yet.
    ///   - authorisationBytes: of all authorisations.
    /// - Throws: `listenersTooBig`.
    func check(
        _ opening: Listener.Opening, to key: TopicKey, _ topic: Topic?, authorisationBytes: Int
    ) throws(MessagesError) {
        let keyBytes = topic?.byteCount ?? ListenerCost.bytes(of: key)
        let own = ListenerCost.listener + (opening.caller.isAdministrator ? 0 : ListenerCost.authorisation)
        let left = limits.listenersServiceBytesMax - bytes - authorisationBytes - own - (topic == nil ? keyBytes : 0)
        guard left >= 0 else { throw .listenersTooBig(bytesMax: limits.listenersServiceBytesMax, of: .service) }
        guard let client = opening.client else { return }
        let wanted = own + keyBytes + ListenerCost.bytes(of: opening.caller)
        guard bytes(of: client) + wanted <= limits.listenersClientBytesMax else {
            throw .listenersTooBig(bytesMax: limits.listenersClientBytesMax, of: .client)
        }
        let isWithinShare = bytes(of: client) + wanted <= left && left >= leftToFirst
        guard isWithinShare || isFirst(wanted, of: client) else {
            throw .listenersTooBig(bytesMax: limits.listenersServiceBytesMax, of: .service)
        }
    }

    // MARK: What happens

    mutating func add(_ topic: Topic) { topicBytes += topic.byteCount }

    mutating func remove(_ topic: Topic) { topicBytes -= topic.byteCount }

    /// The window of a topic takes more, or less.
    mutating func windowChanged(of topic: Topic, by change: Int) {
        topicBytes += change
        for listener in topic.listeners { recount(listener) }
    }

    /// What is wrong when all take more than they may.
    func excess(authorisationBytes: Int) -> MessagesError? {
        guard bytes + authorisationBytes > limits.listenersServiceBytesMax else { return nil }
        return .listenersTooBig(bytesMax: limits.listenersServiceBytesMax, of: .service)
    }

    /// Whether so much is free again that the next ones need not be ended at once.
    func isWellBelowLimit(authorisationBytes: Int) -> Bool {
        bytes + authorisationBytes <= limits.listenersServiceBytesMax - limits.listenersServiceBytesMax / 16
    }

    /// What is wrong when those of a client do.
    func excess(of client: String?) -> MessagesError? {
        guard let client, bytes(of: client) > limits.listenersClientBytesMax else { return nil }
        return .listenersTooBig(bytesMax: limits.listenersClientBytesMax, of: .client)
    }

    mutating func add(_ listener: Listener) {
        count += 1
        clients[client(of: listener), default: Held()].count += 1
        recount(listener)
    }

    /// It has another authorisation, or its topic takes more or less.
    mutating func recount(_ listener: Listener) {
        let authorisation = listener.authorisation.map { $0.byteCount + ListenerCost.bytes(of: $0.key.caller) } ?? 0
        let charge = ListenerCost.listener + listener.topic.byteCount + authorisation
        clients[client(of: listener)]?.bytes += charge - listener.charge
        listener.charge = charge
    }

    mutating func remove(_ listener: Listener) {
        count -= 1
        let client = client(of: listener)
        guard var held = clients[client] else { return }
        held.count -= 1
        held.bytes -= listener.charge
        clients[client] = held.count > 0 ? held : nil
    }
}

import HatoModel
import HatoStorage

/// A topic: how many users are subscribed. It has a row while there is one.
struct TopicRecord: FieldObject {
    var users: Int

    static let fields = Fields<Self>(blank: Self(users: 0), .required("users", \.users))

    /// The topics, each before its users.
    static let prefix = RecordKey(.topic).with(0 as UInt32)
    /// The users, each before its topics.
    static let usersPrefix = RecordKey(.topic).with(1 as UInt32)

    static func key(_ topic: String) -> RecordKey { prefix.with(topic) }
    /// Behind the row of the topic, in the order of uids.
    static func subscriberKey(_ topic: String, _ uid: String) -> RecordKey { key(topic).with(uid) }
    static func userPrefix(_ uid: String) -> RecordKey { usersPrefix.with(uid) }
    static func userKey(_ uid: String, _ topic: String) -> RecordKey { userPrefix(uid).with(topic) }

    /// A topic and its user, or a user and the topic.
    static func names(_ key: [UInt8]) -> (first: String?, second: String?) {
        var reader = RecordKeyReader(key)
        guard reader.shortNumber() != nil else { return (nil, nil) }
        let first = reader.text()
        return (first, reader.text())
    }
}

/// Subscriptions that change in one transaction.
struct TopicChanges {
    private(set) var writes = RecordWrites()

    /// Returns whether the user has no more topics than may be.
    mutating func subscribe(
        _ uid: String, to topic: String, topicsMax: Int, in rows: some StoreReading
    ) throws -> Bool {
        guard try !rows.contains(TopicRecord.userKey(uid, topic)) else { return true }
        guard try rows.keys(TopicRecord.userPrefix(uid), limit: topicsMax).count < topicsMax else { return false }
        writes.put(TopicRecord.userKey(uid, topic))
        writes.put(TopicRecord.subscriberKey(topic, uid))
        let users = try rows.readable(TopicRecord.self, TopicRecord.key(topic))?.users ?? 0
        writes.put(TopicRecord.key(topic), TopicRecord(users: users + 1))
        return true
    }

    mutating func unsubscribe(_ uid: String, from topic: String, in rows: some StoreReading) throws {
        guard try rows.contains(TopicRecord.userKey(uid, topic)) else { return }
        try leave([topic: [uid]], in: rows)
    }

    /// Ends subscriptions of users, at most `max` of all of them together. Returns the users that have no more.
    @discardableResult
    mutating func removeAll(
        of uids: some Sequence<String>, max: Int = .max, in rows: some StoreReading
    ) throws -> [String] {
        var (leaving, done, left): ([String: [String]], [String], Int) = ([:], [], max)
        for uid in uids where left > 0 {
            let keys = try rows.keys(TopicRecord.userPrefix(uid), limit: left)
            for key in keys {
                guard let topic = TopicRecord.names(key.bytes).second else { continue }
                leaving[topic, default: []].append(uid)
            }
            left -= keys.count
            if left > 0 { done.append(uid) }
        }
        try leave(leaving, in: rows)
        return done
    }

    /// Each user is subscribed. The count of a topic is read once: a transaction does not see its own writes.
    private mutating func leave(_ leaving: [String: [String]], in rows: some StoreReading) throws {
        for (topic, uids) in leaving {
            for uid in uids {
                writes.delete(TopicRecord.userKey(uid, topic))
                writes.delete(TopicRecord.subscriberKey(topic, uid))
            }
            let users = try rows.readable(TopicRecord.self, TopicRecord.key(topic))?.users ?? 0
            if users > uids.count {
                writes.put(TopicRecord.key(topic), TopicRecord(users: users - uids.count))
            } else {
                writes.delete(TopicRecord.key(topic))
            }
        }
    }
}

/// What is read of topics.
struct TopicReading {
    private let reading: any StoreReading

    init(_ reading: any StoreReading) { self.reading = reading }

    /// How many users a topic has; 0 without such a topic.
    func userCount(of topic: String) throws -> Int {
        try reading.readable(TopicRecord.self, TopicRecord.key(topic))?.users ?? 0
    }

    /// The users of a topic behind `uid`, in the order of uids.
    func users(of topic: String, after uid: String?, limit: Int) throws -> [String] {
        let last = uid.map { TopicRecord.subscriberKey(topic, $0) } ?? TopicRecord.key(topic)
        return try reading.rows(TopicRecord.key(topic), after: last, limit: limit).compactMap {
            TopicRecord.names($0.key.bytes).second
        }
    }

    /// The topics of a user behind `topic`, in the order of their names.
    func topics(of uid: String, after topic: String?, limit: Int) throws -> [String] {
        let prefix = TopicRecord.userPrefix(uid)
        return try reading.rows(prefix, after: topic.map { prefix.with($0) }, limit: limit).compactMap {
            TopicRecord.names($0.key.bytes).second
        }
    }

    /// All topics behind `topic`, in the order of their names.
    func topics(after topic: String?, limit: Int) throws -> [Notifier.Topic] {
        var range = KeyRange(prefix: TopicRecord.prefix.bytes)
        if let topic, let end = TopicRecord.key(topic).end { range.lower = end }
        var topics: [Notifier.Topic] = []
        while topics.count < limit, !range.isEmpty {
            var found: String?
            try reading.scan(range, reverse: false) { key, _ in
                found = TopicRecord.names(key.copied).first
                return .stop
            }
            // Its users stand behind it, and are passed over.
            guard let found, let end = TopicRecord.key(found).end else { break }
            range.lower = end
            topics.append(Notifier.Topic(topic: found, users: try userCount(of: found)))
        }
        return topics
    }
}

extension ExploredListening {
    enum Step: Hashable {
        /// A commit, sent at once or computed on a reader's thread; `own`: of the listener's connection.
        case write(own: Bool, isLong: Bool)
        /// A commit that the right to read rests on; unless it stands, it writes what may not be seen.
        case doubt(stands: Bool)
        /// The first response to an own write comes by.
        case answer
        case verdict, search, begin, read, topicWork, fill, drain, timer, unlisten
    }

    struct Setting: Hashable {
        /// Listens again from the first version.
        var since = false
        /// The etag it sends: nil, of the value that is there, or of another.
        var etag: String?
        var gathers = false
        /// Whether verdicts come with the group instead of in a later turn.
        var authorisesAtOnce = false
        /// Whether others are live on the topic.
        var hasCompany = false
        /// Whether readings are as old as they may be.
        var shares = false
        /// Whether readings wait for their turns.
        var queues = false
        /// Whether it was sent its first value.
        var isOpen = false
        /// Whether something is being computed for the topic when it begins.
        var isBusy = false
    }

    struct State: Hashable {
        /// The versions that wrote the two children.
        var children: [UInt64]
        var mayRead = true
        var isLong = false
        /// The child that it wrote.
        var written: Int?

        var etag: String { "\(children)" }
    }
}

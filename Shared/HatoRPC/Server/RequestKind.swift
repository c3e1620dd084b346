/// What the order of a connection depends on in a method.
struct RequestKind: Hashable, Sendable {
    enum Start: Hashable, Sendable {
        /// Starts while earlier requests have not ended.
        case immediate
        /// Starts when all earlier requests have ended, slow ones excepted.
        case afterEarlier
        /// Concerns the connection itself and ends at once.
        case session
    }

    var start: Start
    /// Later requests overtake it, and its response leaves when it comes.
    var isSlow = false
    var isRead = false
}

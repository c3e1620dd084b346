import HatoModel

/// The header `Retry-After`.
enum RetryAfter {
    /// Whole seconds of what an error says, rounded up; nil when it says nothing.
    static func seconds(_ error: RPCError) -> Int? {
        guard let wait = error.retryAfter?.components else { return nil }
        return max(1, Int(clamping: wait.seconds) + (wait.attoseconds > 0 ? 1 : 0))
    }

    static func header(_ seconds: Int?) -> [RESTAnswer.Header] {
        seconds.map { [RESTAnswer.Header("Retry-After", String($0))] } ?? []
    }
}

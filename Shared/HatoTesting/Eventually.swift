/// A wait that reached its deadline.
public struct DeadlineExceeded: Error, CustomStringConvertible {
    public var description: String

    /// The failure of a wait for `what`.
    public init(_ what: String) { description = "never came true: \(what)" }
}

/// Returns as soon as `condition` holds. It polls, because some conditions have no event to wait for. Throws
/// `DeadlineExceeded` after `limit`, which is longer than any machine needs: only a failing test reaches it.
public func eventually(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(240), _ condition: () async throws -> Bool
) async throws {
    let clock = ContinuousClock()
    let deadline = clock.now + limit
    while try await !condition() {
        guard clock.now < deadline else { throw DeadlineExceeded(what()) }
        try await clock.sleep(for: .milliseconds(2))
    }
}

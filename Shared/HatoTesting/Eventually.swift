/// What was waited for in vain.
public struct NeverHappened: Error, CustomStringConvertible {
    public var description: String

    /// The failure of a wait for `what`.
    public init(_ what: String) { description = "never came true: \(what)" }
}

/// Returns as soon as `condition` holds; asks again and again, for there are things that cannot be waited for in
/// another way. Throws `NeverHappened` after `limit`, which is longer than any machine needs: only a test that fails
/// gets there.
public func eventually(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(240), _ condition: () async throws -> Bool
) async throws {
    let clock = ContinuousClock()
    let deadline = clock.now + limit
    while try await !condition() {
        guard clock.now < deadline else { throw NeverHappened(what()) }
        try await clock.sleep(for: .milliseconds(2))
    }
}

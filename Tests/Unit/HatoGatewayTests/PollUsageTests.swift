import Testing

@testable import HatoGateway

/// What clients have of the polling sessions of an event loop.
@Suite struct PollUsageTests {
    private final class Usage {
        var value = PollUsage(PollUsage.Limits(sessionsMax: 3, sessionsPerClientMax: 2, bytesPerClientMax: 100))

        func begins(_ client: String) -> Bool { value.begin(client) }
        func ends(_ client: String) { value.end(client) }
        func holds(_ change: Int, _ client: String) -> Bool {
            guard value.allows(change, of: client) else { return false }
            value.hold(change, of: client)
            return true
        }
    }

    @Test func placesAreBoundedForEachClientAndForAll() {
        let usage = Usage()
        #expect(usage.begins("a") && usage.begins("a") && !usage.begins("a"))
        #expect(usage.begins("b") && !usage.begins("b") && !usage.begins("c"))
        usage.ends("a")
        #expect(usage.begins("c") && !usage.begins("a") && usage.value.sessions == 3)
    }

    /// A session that a socket has taken over has no place, but still its bytes.
    @Test func bytesOutliveThePlaceOfTheirSession() {
        let usage = Usage()
        #expect(usage.begins("a") && usage.holds(60, "a"))
        usage.ends("a")
        #expect(usage.value.sessions == 0 && !usage.holds(41, "a") && usage.holds(40, "a"))
        #expect(usage.holds(-100, "a") && usage.value.count == 0)
        #expect(!usage.holds(101, "b") && usage.value.count == 0)
    }
}

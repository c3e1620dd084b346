import Testing

@testable import HatoGateway

/// What clients have of the polling sessions of an event loop.
@Suite struct PollUsageTests {
    private final class Usage {
        var value: PollUsage

        init(sessionsMax: Int = 3) {
            value = PollUsage(
                PollUsage.Limits(sessionsMax: sessionsMax, sessionsPerClientMax: 2, bytesPerClientMax: 100))
        }

        func begins(_ client: String, _ site: String? = nil) -> Bool { value.begin(client, site: site) }
        func ends(_ client: String, _ site: String? = nil) { value.end(client, site: site) }
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

    /// Of the networks of a site, one /48, there are thousands.
    @Test func placesOfASiteAreBounded() {
        let usage = Usage(sessionsMax: 100)
        for number in 0..<8 { #expect(usage.begins("a\(number)", "s")) }
        #expect(!usage.begins("a8", "s") && usage.begins("b", "t") && usage.begins("c"))
        usage.ends("a0", "s")
        #expect(usage.begins("a8", "s"))
        for number in 1...8 { usage.ends("a\(number)", "s") }
        // One with a site, and one without.
        #expect(usage.value.count == 3 && usage.value.sessions == 2)
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

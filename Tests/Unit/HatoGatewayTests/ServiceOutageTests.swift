import Testing

@testable import HatoGateway

/// What is logged of a service that takes no calls.
@Suite struct ServiceOutageTests {
    @Test func anOutageIsLoggedAtOnceAndThenOnceAMinute() {
        var outage = ServiceOutage()
        #expect(outage.failed("refused", at: .seconds(5)) && !outage.failed("refused", at: .seconds(64)))
        #expect(outage.failed("refused", at: .seconds(65)) && !outage.failed("refused", at: .seconds(66)))
    }

    @Test func anotherReasonIsLoggedAtMostOnceASecond() {
        var outage = ServiceOutage()
        #expect(outage.failed("refused", at: .zero) && !outage.failed("key", at: .milliseconds(999)))
        #expect(outage.failed("key", at: .seconds(1)) && !outage.failed("key", at: .seconds(2)))
        #expect(outage.failed("refused", at: .seconds(2)) == true)
    }

    @Test func theReturnIsLoggedOnceBehindAWarning() {
        var outage = ServiceOutage()
        #expect(outage.opened() == false)
        #expect(outage.failed("refused", at: .zero) == true)
        #expect(outage.opened() == true)
        #expect(outage.opened() == false)
        // One that comes and goes fills no log.
        for second in 1..<60 {
            #expect(outage.failed("refused", at: .seconds(second)) == false)
            #expect(outage.opened() == false)
        }
        #expect(outage.failed("refused", at: .seconds(60)) == true)
        #expect(outage.opened() == true)
    }
}

import HatoFirebase
import Testing

@testable import HatoGateway

/// The bytes of calls that wait for services.
@Suite struct CallBytesTests {
    /// Those of four fifths of 512 MiB, and of the least that may be set.
    @Test(arguments: [47_721_858, 17_895_697, 1 << 20])
    func theLargestCallThatTheLimitsAllowAlwaysFits(_ bytes: Int) {
        var limits = GatewayLimits()
        limits.callBytesMax = bytes
        #expect(limits.messagesCallBytesMax >= limits.session.callBytesMax)
        #expect(limits.messagesCallBytesMax >= limits.rest.bodyBytesMax)
        let messages = HeldBytes(max: limits.messagesCallBytesMax)
        #expect(messages.change(by: limits.session.callBytesMax))
        #expect(limits.authCallBytesMax > limits.accounts.importBytesMax + (64 << 10))
        #expect(limits.authCallBytesMax > limits.accounts.bodyBytesMax)
    }

    @Test func withMoreMemoryEachServiceHasItsPart() {
        var limits = GatewayLimits()
        limits.callBytesMax = 400 << 20
        #expect(limits.messagesCallBytesMax == 200 << 20 && limits.authCallBytesMax == 100 << 20)
    }

    /// SDKs repeat a write that is refused because there is too little of this.
    @Test func aClientMayHoldTheLargestMessageWithLittleMemory() {
        let limits = GatewayLimits()
        let largest = max(limits.polls.messageBytesMax, limits.rest.bodyBytesMax, limits.session.callBytesMax)
        #expect(GatewayLimits.heldBytesMin >= largest + limits.polls.segmentBytesMax)
    }

    @Test func anImportIsNoLongerThanALine() {
        var limits = GatewayLimits()
        (limits.callBytesMax, limits.accounts.importBytesMax) = (1 << 20, 1 << 30)
        #expect(limits.authCallBytesMax == limits.session.callBytesMax)
    }
}

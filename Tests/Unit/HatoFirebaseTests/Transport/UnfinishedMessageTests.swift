import Testing

@testable import HatoFirebase

@Suite struct UnfinishedMessageTests {
    @Test func aFrameIsTimedFromItsFirstByte() {
        var message = UnfinishedMessage()
        #expect(message.age(at: 500) == 0)
        message.heard(frameBytes: 1, at: 1_000)
        message.heard(frameBytes: 2, at: 60_000)
        #expect(message.frameBytes == 2)
        #expect(message.age(at: 61_000) == 60_000)
        message.heard(frameBytes: 0, at: 62_000)
        message.frameEnded(heldBytes: 0, at: 62_000)
        #expect(message.age(at: 99_000) == 0)
    }

    /// Frames whose ends are in the reads that begin the next ones.
    @Test func eachOfManyFramesHasItsOwnTime() {
        var message = UnfinishedMessage()
        for second in 1...1_000 {
            let now = Int64(second) * 1_000
            message.heard(frameBytes: 100, at: now)
            if second > 1 { message.frameEnded(heldBytes: 0, at: now) }
            #expect(message.age(at: now + 999) == 999)
        }
    }

    /// Complete frames of a message that is not, with pings between them.
    @Test func partsOfAMessageAreTimedTogether() {
        var message = UnfinishedMessage()
        for second in 1...100 {
            message.heard(frameBytes: 0, at: Int64(second) * 1_000)
            message.frameEnded(heldBytes: second * 100, at: Int64(second) * 1_000)
        }
        #expect(message.age(at: 100_000) == 99_000)
        message.frameEnded(heldBytes: 0, at: 100_000)
        #expect(message.age(at: 200_000) == 0)
    }

    @Test func timeInWhichTheClientIsNotReadDoesNotCount() {
        var message = UnfinishedMessage()
        message.heard(frameBytes: 9, at: 1_000)
        message.inputChanged(isPaused: true, at: 3_000)
        #expect(message.age(at: 90_000) == 2_000)
        message.inputChanged(isPaused: false, at: 100_000)
        #expect(message.age(at: 101_000) == 3_000)
        // What had been read already may begin one.
        message.heard(frameBytes: 0, at: 102_000)
        message.frameEnded(heldBytes: 0, at: 102_000)
        message.inputChanged(isPaused: true, at: 200_000)
        message.frameEnded(heldBytes: 5, at: 201_000)
        message.inputChanged(isPaused: false, at: 300_000)
        #expect(message.age(at: 300_000) == 0)
        #expect(message.age(at: 301_000) == 1_000)
    }
}

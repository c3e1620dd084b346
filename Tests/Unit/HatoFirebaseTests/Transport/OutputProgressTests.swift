import Testing

@testable import HatoFirebase

@Suite struct OutputProgressTests {
    @Test func lessThatWaitsIsProgress() {
        var output = OutputProgress()
        output.changed(isFull: true, at: 1_000)
        let looks = [16_000_000, 16_000_000, 15_000_000, 15_000_000].map { output.looked(waitingBytes: $0) }
        #expect(looks == [false, false, true, false])
        output.changed(isFull: true, at: 50_000)
        #expect(output.age(at: 61_000) == 60_000)
    }

    @Test func aSocketThatIsNoLongerFullBeginsAgain() {
        var output = OutputProgress()
        output.changed(isFull: false, at: 0)
        #expect(output.age(at: 9_000) == 0)
        output.changed(isFull: true, at: 1_000)
        var looks = [output.looked(waitingBytes: 5_000)]
        output.changed(isFull: false, at: 2_000)
        #expect(output.age(at: 9_000) == 0)
        output.changed(isFull: true, at: 3_000)
        looks.append(output.looked(waitingBytes: 4_000))
        #expect(looks == [false, false])
        #expect(output.age(at: 9_000) == 6_000)
    }
}

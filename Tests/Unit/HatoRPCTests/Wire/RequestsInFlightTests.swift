import HatoTesting
import Testing

@testable import HatoRPC

@Suite struct RequestsInFlightTests {
    @Test func idsBeginAtOneAndEndOnce() {
        var requests = RequestsInFlight()
        #expect((0..<3).map { _ in requests.begin() } == [1, 2, 3])
        #expect(!requests.end(0) && !requests.end(4))
        #expect(requests.end(2) && !requests.end(2))
        #expect(requests.all == [1, 3] && requests.oldest == 1)
        #expect(requests.end(1) && requests.end(3) && !requests.end(3))
        #expect(requests.count == 0 && requests.oldest == nil)
    }

    @Test func requestsAreThoseOfASet() {
        let failures = FuzzInputs.failures(300) { random in
            var requests = RequestsInFlight()
            var expected: [UInt64] = []
            var next: UInt64 = 1
            for _ in 0..<random.below(400) {
                if random.once(in: 2) {
                    guard requests.begin() == next else { return "another id than \(next)" }
                    expected.append(next)
                    next += 1
                } else {
                    // Mostly the first one, as services respond.
                    let id = random.once(in: 3) ? UInt64(random.below(Int(next) + 2)) : expected.first ?? 0
                    let index = expected.firstIndex(of: id)
                    if let index { expected.remove(at: index) }
                    guard requests.end(id) == (index != nil) else { return "\(id) of \(expected)" }
                }
                guard requests.all == expected, requests.count == expected.count, requests.oldest == expected.first
                else { return "\(requests.all), not \(expected)" }
            }
            return nil
        }
        #expect(failures == [])
    }
}

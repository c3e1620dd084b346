import Testing

@testable import HatoStorage

@Suite("The threads of readers")
struct ReaderPoolTests {
    @Test func longJobsOfOneClientLeaveAThreadToOthers() async throws {
        let pool = try ReaderPool(threads: 2)
        let (gate, done) = (Latch(), Collected<String>())
        for number in 0..<3 {
            pool.submit(of: "a") {
                gate.wait()
                done.append("a\(number)")
            }
        }
        pool.submit(of: "b") { done.append("b") }
        pool.submit(of: nil) { done.append("service") }
        #expect(Set(try await done.first(2)) == ["b", "service"])
        // Those that wait run when the pool is closed, too.
        pool.close()
        gate.open()
        #expect(try await done.first(5).dropFirst(2) == ["a0", "a1", "a2"])
    }

    /// Each thread that was woken wakes the next one when jobs are left.
    @Test func jobsThatComeAtOnceRunOnAllThreadsAlthoughEachBlocks() async throws {
        let pool = try ReaderPool(threads: 3)
        let done = Collected<Int>()
        for round in 0..<50 {
            let gate = Latch()
            for client in ["a", "b"] {
                pool.submit(of: client) {
                    gate.wait()
                    done.append(round)
                }
            }
            pool.submit(of: "c") {
                gate.open()
                done.append(round)
            }
            #expect(try await done.first(3 * (round + 1)).suffix(3) == [round, round, round])
        }
    }

    @Test func aSingleThreadRunsJobsOfAClient() async throws {
        let pool = try ReaderPool(threads: 1)
        let done = Collected<Int>()
        for number in 0..<3 { pool.submit(of: "a") { done.append(number) } }
        #expect(try await done.first(3) == [0, 1, 2])
    }
}

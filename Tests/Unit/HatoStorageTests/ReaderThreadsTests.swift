import Testing

@testable import HatoStorage

#if canImport(Glibc)
    import Glibc
#endif

@Suite("The threads of short and long reads")
struct ReaderThreadsTests {
    @Test func shortReadsDoNotWaitForLongOnesOfManyClients() async throws {
        let readers = try ReaderThreads(StoreLimits())
        let (gate, done) = (Latch(), Collected<String>())
        for number in 0..<20 {
            readers.submit(of: "a\(number)", isLong: true) {
                gate.wait()
                done.append("long")
            }
        }
        for name in ["a0", "b"] { readers.submit(of: name, isLong: false) { done.append(name) } }
        #expect(Set(try await done.first(2)) == ["a0", "b"])
        gate.open()
        #expect(try await done.first(22).dropFirst(2).allSatisfy { $0 == "long" })
        readers.close()
    }

    #if canImport(Glibc)
        @Test func longReadsHaveALowerPriority() async throws {
            let readers = try ReaderThreads(StoreLimits())
            let priorities = Collected<Int32>()
            readers.submit(of: "a", isLong: false) { priorities.append(getpriority(__priority_which_t(0), 0)) }
            let short = try #require(try await priorities.first(1).first)
            readers.submit(of: "a", isLong: true) { priorities.append(getpriority(__priority_which_t(0), 0)) }
            let long = try #require(try await priorities.first(2).last)
            #expect(long > short)
            readers.close()
        }
    #endif
}

import Testing

@testable import HatoStorage

@Suite("The threads of a store's writer")
struct ThreadTests {
    /// A failed opening releases the store's files.
    @Test(arguments: [1, 2])
    func aStoreWhoseThreadCannotBeStartedIsReleased(failing: Int) async throws {
        let rows = MemoryRows(MemoryHistory(), commitsBytesMax: 1)
        let (asked, ended) = (Collected<Int>(), Collected<Int>())
        let start: (@escaping @Sendable () -> Void) throws(StoreError) -> Void = { body throws(StoreError) in
            let number = asked.all.count + 1
            asked.append(number)
            if number == failing { throw StoreError.io("no more threads") }
            try startThread {
                body()
                ended.append(number)
            }
        }
        #expect(throws: StoreError.io("no more threads")) {
            try GroupCommit(
                rows, at: rows.snapshot(at: 0, derived: nil), limits: StoreLimits(), startingThreadsBy: start)
        }
        #expect(throws: StoreError.closed(cause: nil)) { try rows.checkOpen() }
        #expect(asked.all.count == failing)
        #expect(try await ended.first(failing - 1) == Array(1..<failing), "the thread that was started has ended")
    }
}

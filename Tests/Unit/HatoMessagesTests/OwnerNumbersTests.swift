import Testing

@testable import HatoMessages

struct OwnerNumbersTests {
    @Test func numbersFollowEachOther() {
        var numbers = OwnerNumbers()
        #expect((0..<3).map { _ in numbers.next { _ in false } } == [1, 2, 3])
    }

    @Test func numbersBeginAnewBehindTheLastOne() {
        var numbers = OwnerNumbers(after: .max - 1)
        #expect((0..<3).map { _ in numbers.next { _ in false } } == [.max, 0, 1])
    }

    @Test func numberInUseIsPassedOver() {
        let used: Set<UInt32> = [.max, 0, 2]
        var numbers = OwnerNumbers(after: .max - 1)
        #expect((0..<2).map { _ in numbers.next(besides: used.contains) } == [1, 3])
    }
}

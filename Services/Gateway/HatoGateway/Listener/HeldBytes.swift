/// How many bytes of incomplete requests and messages an event loop holds, with a bound.
final class HeldBytes {
    private let max: Int
    private var count = 0

    init(max: Int) { self.max = max }

    /// Takes a change; false, without taking it, when there are too many.
    func change(by bytes: Int) -> Bool {
        guard bytes <= 0 || count + bytes <= max else { return false }
        count += bytes
        return true
    }

    func release(_ bytes: Int) { count -= bytes }
}

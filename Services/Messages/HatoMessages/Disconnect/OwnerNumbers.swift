/// Numbers the owners of one connection, for the keys of their rows.
///
/// A number is given again only when nothing holds it any more: a connection may make more calls than there are
/// numbers.
struct OwnerNumbers {
    private var last: UInt32

    init(after last: UInt32 = 0) { self.last = last }

    /// The next number that is not among those in use, of which there are fewer than there are numbers.
    mutating func next(besides isUsed: (UInt32) -> Bool) -> UInt32 {
        repeat { last &+= 1 } while isUsed(last)
        return last
    }
}

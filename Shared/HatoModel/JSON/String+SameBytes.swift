extension String {
    /// Whether both texts have the same bytes. Swift's `==` also treats canonically equivalent ones as equal: a letter
    /// with an accent, and the same letter composed of two characters.
    package func hasSameBytes(as other: String) -> Bool {
        // Short texts stand in the string itself: this finds nearly all that are equal without a look at their bytes.
        if _isIdentical(to: other) { return true }
        guard utf8.count == other.utf8.count else { return false }
        let (left, right) = (utf8.span, other.utf8.span)
        var index = 0
        while index &+ 8 <= left.count {
            guard littleEndianWord(left, at: index) == littleEndianWord(right, at: index) else { return false }
            index &+= 8
        }
        while index < left.count {
            guard left[index] == right[index] else { return false }
            index &+= 1
        }
        return true
    }
}

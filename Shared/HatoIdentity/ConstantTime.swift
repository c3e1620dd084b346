/// Comparison of secrets in constant time.
public enum ConstantTime {
    /// Whether both are the same; the duration reveals only whether their lengths are equal, not where they differ.
    public static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for (left, right) in zip(left, right) { difference |= left ^ right }
        return difference == 0
    }
}

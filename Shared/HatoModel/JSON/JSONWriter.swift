/// Writes JSON texts into bytes, without white space, members in the order they are written.
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8] = []
    public init() {}
}

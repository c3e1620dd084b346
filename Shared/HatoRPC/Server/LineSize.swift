/// How much memory a complete line and its values take, as far as that decides when it is read.
enum LineSize {
    /// Read whatever is held, but one at a time on its connection.
    case small
    /// Read while long lines wait for memory.
    case medium
    case long

    /// What a line holds while too much is held of others that may be read all the same.
    var use: ConnectionStateMachine.ExemptionUse { self == .long ? .line : .mediumLine }
}

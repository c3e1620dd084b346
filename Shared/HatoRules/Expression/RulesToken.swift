/// One token of a rule expression.
struct RulesToken: Hashable {
    enum Kind: Hashable {
        /// A name, or `$name`.
        case name(String)
        case number(Double)
        case string(String)
        case regex(pattern: String, flags: String)
        /// An operator or bracket, as written.
        case mark(String)
        case end
    }

    var kind: Kind
    /// The offset in the document.
    var offset: Int
    /// The offset after its last scalar.
    var end: Int
}

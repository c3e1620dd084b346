/// The position of an event: its commit, and its number there. As one number it has place for a million events a commit
/// and stays exact in JSON for 8 billion commits.
struct EventPosition: Hashable, Sendable {
    private static let indexBits = 20
    var number: Int

    var version: UInt64 { UInt64(number >> EventPosition.indexBits) }
    /// The version whose followers are sent the commit of this position.
    var before: UInt64 {
        number & (1 << EventPosition.indexBits - 1) == (1 << EventPosition.indexBits) - 1
            ? version : version - min(version, 1)
    }

    init(number: Int) { self.number = max(0, number) }

    init(version: UInt64, index: Int) { number = Int(clamping: version) << EventPosition.indexBits + index }

    /// Behind everything of a commit.
    init(endOf version: UInt64) { self.init(version: version, index: 1 << EventPosition.indexBits - 1) }
}

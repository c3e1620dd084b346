/// One problem of a rules text and its position: line and column count from 1, columns in Unicode scalars.
public struct RulesProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The line, from 1.
    public var line: Int
    /// The column in the line, from 1.
    public var column: Int
    /// Firebase's message where it has one (spec §9.6).
    public var message: String

    public init(line: Int, column: Int, message: String) {
        self.line = line
        self.column = column
        self.message = message
    }

    public var description: String { "\(line):\(column): \(message)" }
}

/// All problems of a rules text, in the order of the text. Never empty.
public struct RulesProblems: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problems; never empty.
    public var problems: [RulesProblem]

    public init(_ problems: [RulesProblem]) { self.problems = problems }

    /// One problem a line, as `line:column: message`.
    public var description: String { problems.map { "\($0)\n" }.joined() }
}

/// A problem whose position is an offset into the scalars of the text, before lines are counted.
struct RulesFault: Error, Hashable {
    var offset: Int
    var message: String
}

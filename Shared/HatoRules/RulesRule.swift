/// One `.read`, `.write` or `.validate` of compiled rules.
public final class RulesRule: Sendable {
    /// What a rule is for.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case read = ".read"
        case write = ".write"
        case validate = ".validate"
    }

    /// Its number in the order of the text, from 0: the place in `Rules.rules`.
    public let id: Int
    /// What the rule is for.
    public let kind: Kind
    /// Nil: the root.
    let place: RulesPattern?
    let source: RulesDocument.PlacedText
    let test: RulesTest
    /// How many expressions it has: what it costs before it looks at data.
    let count: Int

    init(
        _ kind: Kind, id: Int, at place: RulesPattern?, _ compiled: (RulesDocument.PlacedText, RulesTest, count: Int)
    ) {
        self.id = id
        self.kind = kind
        self.place = place
        (source, test, count) = compiled
    }

    /// The node it stands at, as it is written: `/chats/$chat`.
    public var pattern: String { place?.text ?? "/" }

    /// The expression, with the escapes of the document resolved.
    public var text: String { source.text }

    /// Where the expression begins, as an offset of scalars of the document.
    var offset: Int { source.place(0) }

    /// Whether the rule holds. What goes wrong in it makes it false; only data that cannot be read is thrown.
    func holds(_ evaluation: inout RulesEvaluation) throws -> (Bool, RulesFailure?) {
        do {
            try evaluation.begin(count)
            return (try test(&evaluation), nil)
        } catch {
            if error.reason == .data { throw evaluation.dataError ?? error }
            evaluation.failed = error.span
            return (false, error)
        }
    }
}

/// One `.read`, `.write` or `.validate` of compiled rules.
public final class RulesRule: Sendable {
    /// The operation that a rule is for.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case read = ".read"
        case write = ".write"
        case validate = ".validate"
    }

    /// Its number in the order of the text, from 0: the index in `Rules.rules`.
    public let id: Int
    /// The operation that the rule is for.
    public let kind: Kind
    /// The pattern of the rule's node; nil: the root.
    let nodePattern: RulesPattern?
    let source: RulesDocument.LocatedText
    let test: RulesTest
    /// The number of its expressions: its cost before it reads data.
    let count: Int

    init(
        _ kind: Kind, id: Int, at nodePattern: RulesPattern?,
        _ compiled: (RulesDocument.LocatedText, RulesTest, count: Int)
    ) {
        self.id = id
        self.kind = kind
        self.nodePattern = nodePattern
        (source, test, count) = compiled
    }

    /// The pattern of its node: `/chats/$chat`.
    public var pattern: String { nodePattern?.text ?? "/" }

    /// The expression, with the escapes of the document resolved.
    public var text: String { source.text }

    /// The offset of the expression in scalars of the document.
    var offset: Int { source.offset(0) }

    /// Whether the rule holds. A failure in it makes it false; only an error of the data is thrown.
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

import HatoModel
import HatoRules
import HatoTree

/// What a read or write must know of a database; replaced as a whole when something changes.
final class Database: Sendable {
    let name: DatabaseName
    let record: DatabaseRecord
    let rules: Rules
    let codec: TreeKeyCodec
    let planner: WritePlanner

    var id: DatabaseID { record.id }

    /// Throws `MessagesError.wrongRules`.
    init(name: DatabaseName, record: DatabaseRecord) throws(MessagesError) {
        self.name = name
        self.record = record
        do { rules = try Rules.compile(record.rules) } catch { throw .wrongRules(error) }
        codec = TreeKeyCodec(prefix: StoreKeys.tree(of: record.id))
        planner = WritePlanner(codec: codec)
    }

    /// Throws `MessagesError.denied` when the rules do not let `caller` write every place the mutation names.
    func authorise(_ mutation: Mutation, by caller: Caller) throws {
        if caller.isAdministrator { return }
        let verdict: RulesVerdict
        switch mutation.operation {
        case .set: verdict = rules.mayWrite(mutation.path, as: caller)
        case .push(_, let key, _):
            verdict = rules.mayWrite(try Self.place("path") { () throws(ArgumentError) in try mutation.path.child(TreeKey(key)) }, as: caller)
        case .update(let values):
            verdict = rules.mayWrite(
                try values.members.map { member in
                    try Self.place("values") { () throws(ArgumentError) in try mutation.path.appending(TreePath(member.name)) }
                }, as: caller)
        }
        if case .denied(let path) = verdict { throw MessagesError.denied(path) }
    }

    /// Throws `MessagesError.denied` when the rules do not let `caller` read the node.
    func authorise(reading path: TreePath, by caller: Caller) throws(MessagesError) {
        guard rules.mayRead(path, as: caller) else { throw .denied(path) }
    }

    private static func place(_ parameter: String, _ make: () throws(ArgumentError) -> TreePath) throws(TreeError) -> TreePath {
        do { return try make() } catch { throw .invalid(parameter: parameter, error) }
    }
}

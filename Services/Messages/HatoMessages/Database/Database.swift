import HatoModel
import HatoRules
import HatoStorage
import HatoTree

/// What a read or write must know of a database; replaced as a whole when something changes.
final class Database: Sendable {
    let name: DatabaseName
    let record: DatabaseRecord
    let rules: Rules
    /// The indexes that the rules declare, and how far they are built.
    let indexes: IndexCatalog
    let codec: TreeKeyCodec
    let indexCodec: IndexKeyCodec
    let planner: WritePlanner
    /// `indexes` as they are stored.
    private let encodedIndexes: [UInt8]

    var id: DatabaseID { record.id }

    init(name: DatabaseName, record: DatabaseRecord, rules: Rules, indexes: IndexCatalog) {
        self.name = name
        self.record = record
        self.rules = rules
        self.indexes = indexes
        codec = TreeKeyCodec(prefix: StoreKeys.tree(of: record.id))
        indexCodec = IndexKeyCodec(prefix: StoreKeys.indexRows(of: record.id))
        // A new object has a new memory: what was written between two of them is not known.
        planner = WritePlanner(
            codec: codec, indexes: IndexDeltas(indexes, codec: indexCodec), memory: ParentMemory())
        var writer = JSONWriter()
        writer.write(indexes.json)
        encodedIndexes = writer.bytes
    }

    /// As stored: the record and, under a key of its own because a build changes it often, the indexes.
    convenience init(name: DatabaseName, record: DatabaseRecord, reading snapshot: any StoreSnapshot) throws {
        let rules: Rules
        do { rules = try Rules.compile(record.rules) } catch { throw MessagesError.wrongRules(error) }
        let indexes = try snapshot.get(StoreKeys.indexes(of: record.id).span).map(Self.indexes)
        self.init(name: name, record: record, rules: rules, indexes: indexes ?? IndexCatalog())
    }

    private static func indexes(_ bytes: [UInt8]) throws -> IndexCatalog {
        guard let indexes = IndexCatalog(json: try JSONParser.parse(bytes)) else {
            throw RecordError(record: "indexes")
        }
        return indexes
    }

    /// The same as of a snapshot: its indexes must be those whose rows the snapshot holds, while the catalogue may be a
    /// moment ahead of it or behind. One look-up, as a rule.
    func asOf(_ snapshot: any StoreSnapshot) throws -> Database {
        let bytes = try snapshot.get(StoreKeys.indexes(of: id).span) ?? []
        return bytes == encodedIndexes ? self : with(bytes.isEmpty ? IndexCatalog() : try Self.indexes(bytes))
    }

    /// The same with other indexes, or the same indexes built further.
    func with(_ indexes: IndexCatalog) -> Database {
        Database(name: name, record: record, rules: rules, indexes: indexes)
    }

    /// Puts both records.
    func put(into transaction: any StoreTransaction) {
        let (key, value) = (StoreKeys.database(name), record.encoded)
        transaction.put(key.span, value.span)
        putIndexes(into: transaction)
    }

    func putIndexes(into transaction: any StoreTransaction) {
        let (key, value) = (StoreKeys.indexes(of: id), encodedIndexes)
        transaction.put(key.span, value.span)
    }
}

// MARK: - Who may

extension Database {
    /// Throws `MessagesError.denied` when the rules do not let `caller` write every place the mutation names.
    func authorise(_ mutation: Mutation, by caller: Caller) throws {
        if caller.isAdministrator { return }
        let verdict: RulesVerdict
        switch mutation.operation {
        case .set: verdict = rules.mayWrite(mutation.path, as: caller)
        case .push(_, let key, _):
            verdict = rules.mayWrite(try place("path") { try mutation.path.child(TreeKey(key)) }, as: caller)
        case .update(let values):
            let paths = try values.members.map { member in
                try place("values") { try mutation.path.appending(TreePath(member.name)) }
            }
            verdict = rules.mayWrite(paths, as: caller)
        }
        if case .denied(let path) = verdict { throw MessagesError.denied(path) }
    }

    /// Whether the answer to a write could tell `caller` of a node that he may not read.
    func hidesStored(_ mutation: Mutation, from caller: Caller) throws -> Bool {
        if case .push(_, let key, isClientKey: true) = mutation.operation {
            let path = try place("path") { try mutation.path.child(TreeKey(key)) }
            return !rules.mayRead(path, as: caller)
        }
        return mutation.condition != nil && !rules.mayRead(mutation.path, as: caller)
    }

    /// Throws `MessagesError.denied` when the rules do not let `caller` read the node.
    func authorise(reading path: TreePath, by caller: Caller) throws(MessagesError) {
        guard rules.mayRead(path, as: caller) else { throw .denied(path) }
    }

    private func place(_ parameter: String, _ make: () throws -> TreePath) throws -> TreePath {
        do { return try make() } catch let error as ArgumentError {
            throw TreeError.invalid(parameter: parameter, error)
        }
    }
}

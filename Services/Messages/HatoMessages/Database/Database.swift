import HatoModel
import HatoRules
import HatoStorage
import HatoTree

/// What a read or write must know of a database; replaced as a whole when something changes.
final class Database: Sendable {
    let name: DatabaseName
    let record: DatabaseRecord
    let rules: Rules
    let meter: RulesMeter
    /// The indexes that the rules declare, and how far they are built.
    let indexes: IndexCatalog
    let codec: TreeKeyCodec
    let indexCodec: IndexKeyCodec
    let planner: WritePlanner
    let newest = NewestRows()

    var id: DatabaseID { record.id }

    init(name: DatabaseName, record: DatabaseRecord, rules: Rules, meter: RulesMeter, indexes: IndexCatalog) {
        self.name = name
        self.record = record
        self.rules = rules
        self.meter = meter
        self.indexes = indexes
        codec = TreeKeyCodec(prefix: StoreKeys.tree(of: record.id))
        indexCodec = IndexKeyCodec(prefix: StoreKeys.indexRows(of: record.id))
        // A new object has a new cache: what was written between two of them is not known.
        let start = ContinuousClock.now
        planner = WritePlanner(
            codec: codec, indexes: IndexDeltas(indexes, codec: indexCodec),
            cache: NodeCache(uptime: { ContinuousClock.now - start }))
    }

    /// The same with its indexes built further, in the turn of the write that builds them. Nothing of the tree was
    /// written between the two, nor is by this write: the planner's cache stays correct.
    init(_ former: Database, buildingFurther indexes: IndexCatalog) {
        name = former.name
        record = former.record
        rules = former.rules
        meter = former.meter
        self.indexes = indexes
        codec = former.codec
        indexCodec = former.indexCodec
        planner = former.planner.with(IndexDeltas(indexes, codec: indexCodec))
    }

    /// As stored: the record and, under a key of its own because a build changes it often, the indexes.
    convenience init(
        name: DatabaseName, record: DatabaseRecord, reading snapshot: any StoreReading, _ meter: RulesMeter
    ) throws {
        let rules: Rules
        do { rules = try Rules.compile(stored: record.rules) } catch { throw MessagesError.wrongRules(error) }
        let indexes = try snapshot.get(StoreKeys.indexes(of: record.id).span).map(Self.indexes)
        self.init(name: name, record: record, rules: rules, meter: meter, indexes: indexes ?? IndexCatalog())
    }

    private static func indexes(_ bytes: [UInt8]) throws -> IndexCatalog {
        guard let indexes = IndexCatalog(json: try JSONParser.parse(bytes)) else {
            throw RecordError(record: "indexes")
        }
        return indexes
    }

    /// Puts both records.
    func put(into transaction: any StoreTransaction) {
        let (key, value) = (StoreKeys.database(name), record.encoded)
        transaction.put(key.span, value.span)
        putIndexes(into: transaction)
    }

    func putIndexes(into transaction: any StoreTransaction) {
        var writer = JSONWriter()
        writer.write(indexes.json)
        let (key, value) = (StoreKeys.indexes(of: id), writer.bytes)
        transaction.put(key.span, value.span)
    }
}

public import HatoModel
public import HatoStorage
import HatoTree

/// Checks all that this service keeps in a store: `messages.verify`, and `hato-messages verify` where no service
/// runs.
///
/// First the files: all that is in them is compared with its checksums, also what nothing can read any more, for the
/// store ends when it meets damage there as it rewrites a file. Then every row is read, and what is read is compared:
/// rows of trees by themselves (`TreeCheck`), indexes with their trees both ways (`IndexCheck`), rows with the
/// databases they belong to, and the kept records of commits with each other: their versions have no gap. What cannot
/// be read ends the part it is met in and is a finding; the other parts go on.
public final class StoreVerification {
    /// Something that is not as it was written.
    public typealias Finding = Messages.Verify.Finding

    private let store: any StoreInspection
    private let findingsMax: Int
    private let progress: (Int) -> Void
    private var findings: [Finding] = []
    private var findingCount = 0
    private var checked = Messages.Verify.Checked()
    private var rows = 0
    /// Rules are compiled here, and never asked.
    private let meter: RulesMeter

    /// - Parameter progress: is called now and then with the rows read so far, on the thread that runs the check.
    public convenience init(
        _ store: any StoreInspection, findingsMax: Int, progress: @escaping (Int) -> Void = { _ in }
    ) {
        let meter = RulesMeter(MessagesLimits(), MessagesMetrics())
        self.init(store, findingsMax: findingsMax, meter: meter, progress: progress)
    }

    init(
        _ store: any StoreInspection, findingsMax: Int, meter: RulesMeter,
        progress: @escaping (Int) -> Void = { _ in }
    ) {
        self.store = store
        self.findingsMax = findingsMax
        self.meter = meter
        self.progress = progress
    }

    /// Blocks as long as it takes. Throws only `StoreError.closed`, when the store goes away meanwhile.
    public func run() throws(StoreError) -> Messages.Verify.Result {
        for problem in store.problems { add(Finding(.storage, "\(problem)")) }
        try part("the files of the store") {
            for damage in try self.store.findDamage({ self.advance(by: $0) }) {
                self.add(Finding(.storage, "\(damage)"))
            }
        }
        var databases: [Database] = []
        try part("the list of databases") { databases = try self.readDatabases() }
        for database in databases { try check(database) }
        try part("the rows outside of databases") { try self.findUnknownRows(Set(databases.map(\.id))) }
        try checkCommits()
        return Messages.Verify.Result(
            version: store.version, findings: findings, findingCount: findingCount, checked: checked)
    }

    // MARK: Findings

    private func add(_ finding: Finding) {
        findingCount += 1
        if findings.count < findingsMax { findings.append(finding) }
    }

    private func add(_ row: RowFinding, _ kind: Finding.Kind, in database: Database) {
        add(
            Finding(
                kind, row.problem, database: database.name.rawValue, path: row.path?.text,
                index: row.index.map { "\($0.pattern) on \($0.on)" }))
    }

    /// Runs one part; what it throws is a finding.
    private func part(_ name: String, of database: Database? = nil, _ body: () throws -> Void) throws(StoreError) {
        do {
            try body()
        } catch StoreError.closed(let cause) {
            throw .closed(cause: cause)
        } catch {
            add(
                Finding(
                    .storage, "\(name) cannot be read to the end: \(error)", database: database?.name.rawValue))
        }
    }

    private func advance(by more: Int = 1) {
        let reported = rows / 4_096
        rows += more
        if rows / 4_096 > reported { progress(rows) }
    }

    // MARK: Databases

    private func readDatabases() throws -> [Database] {
        var records: [(key: [UInt8], value: [UInt8])] = []
        try store.scan(StoreKeys.databases, reverse: false) { key, value in
            records.append((key.withUnsafeBufferPointer { Array($0) }, value.withUnsafeBufferPointer { Array($0) }))
            return .next
        }
        var databases: [Database] = []
        for (key, value) in records {
            let text = String(decoding: key.dropFirst(StoreKeys.databases.lower.count), as: UTF8.self)
            do {
                guard let name = DatabaseName(rawValue: text) else { throw RecordError(record: "database name") }
                databases.append(try Database(name: name, record: DatabaseRecord(value), reading: store, meter))
            } catch let error as StoreError {
                throw error
            } catch {
                add(Finding(.tree, "the record of the database cannot be read: \(error)", database: text))
            }
        }
        let ids = Dictionary(grouping: databases, by: \.id)
        for database in databases where ids[database.id]?.count != 1 {
            add(Finding(.tree, "another database has its id", database: database.name.rawValue))
        }
        return databases
    }

    private func check(_ database: Database) throws(StoreError) {
        checked.databases += 1
        let reader = StoreTreeReader(store)
        let before = findingCount
        var priorities = 0
        try part("the tree", of: database) {
            let tree = TreeCheck(reader, codec: database.codec, indexCodec: database.indexCodec) {
                self.add($0, $0.isOfIndex ? .index : .tree, in: database)
            }
            priorities = try tree.run {
                self.checked.rows += 1
                self.advance()
            }
        }
        let areComplete = findingCount == before
        let check = IndexCheck(reader, codec: database.codec, indexCodec: database.indexCodec) {
            self.add($0, .index, in: database)
        }
        try part("the index of priorities", of: database) {
            self.checked.indexRows += try check.runPriorities(wanted: priorities, isComplete: areComplete) {
                self.advance()
            }
        }
        for index in database.indexes.indexes {
            try part("the index \(index.definition.pattern) on \(index.definition.on)", of: database) {
                self.checked.indexes += 1
                self.checked.indexRows += try check.run(index) { self.advance() }
            }
        }
        try part("the index rows", of: database) { try check.findUndeclared(database.indexes) }
    }

    // MARK: Rows without an owner

    /// Rows of databases that are not there, and rows of nothing this service knows.
    private func findUnknownRows(_ databases: Set<DatabaseID>) throws {
        try store.scan(.all, reverse: false) { key, value in
            let owner = StoreKeys.owner(of: key)
            switch owner {
            case .single: return .next
            case .disconnect:
                if !DisconnectRecord.canBeRead(key, value) {
                    add(Finding(.tree, "an onDisconnect write cannot be read"))
                }
                return .next
            case .ofDatabase(let id, let rows):
                if !databases.contains(id) {
                    add(Finding(.tree, "there are rows of database \(id.rawValue), which does not exist"))
                }
                return rows.upper.map { .seek($0) } ?? .stop
            case nil:
                add(Finding(.tree, "a row has a key that nothing here writes"))
                // One of each kind is enough.
                return key.count > 0 && key[0] < 0xFF ? .seek([key[0] + 1]) : .stop
            }
        }
    }

    // MARK: Commits

    private func checkCommits() throws(StoreError) {
        guard let oldest = store.oldestCommit else { return }
        var position = oldest - 1
        while position < store.version {
            let commits: [Commit]
            do {
                commits = try store.commits(after: position, limit: 1_000)
            } catch StoreError.closed(let cause) {
                throw .closed(cause: cause)
            } catch StoreError.compacted(let oldest) {
                // Forgotten while they were read.
                position = oldest - 1
                continue
            } catch {
                return add(Finding(.changes, "\(error)", version: position + 1))
            }
            guard let newest = commits.last else {
                return add(Finding(.changes, "the record of this commit is missing", version: position + 1))
            }
            for commit in commits { check(commit) }
            position = newest.version
        }
    }

    private func check(_ commit: Commit) {
        checked.changes += 1
        advance()
        do {
            guard let note = try CommitNote.of(commit), note.version != commit.version else { return }
            add(Finding(.changes, "the record says it is of commit \(note.version)", version: commit.version))
        } catch {
            add(Finding(.changes, "the record cannot be read: \(error)", version: commit.version))
        }
    }
}

public import HatoModel
public import HatoRules

/// The indexes of one database with their state, as pure data: stored beside the rules and changed together with them.
public struct IndexCatalog: Sendable, Hashable {
    /// Whether queries may use an index.
    public enum State: Sendable, Hashable {
        /// Children up to the cursor have their rows; nil: none yet. Writes keep all rows correct meanwhile.
        case building(after: IndexCursor?)
        case ready
    }

    /// An index of the catalogue.
    public struct Index: Sendable, Hashable {
        /// What is indexed.
        public var definition: IndexDefinition
        /// Whether it is complete.
        public var state: State

        /// Whether queries may use it.
        public var isReady: Bool { state == .ready }
    }

    /// The indexes in the order of their declaration.
    public private(set) var indexes: [Index] = []
    private var nextID: UInt32 = 1

    public init() {}

    /// The definitions of all indexes.
    public var definitions: [IndexDefinition] { indexes.map(\.definition) }

    /// Updates the catalogue to the indexes that rules declare. New indexes begin to build; the dropped ones are
    /// returned: their rows are no longer read or written.
    public mutating func adopt(_ rules: [RulesIndex]) -> [IndexDefinition] {
        var kept: [Index] = []
        var rest = indexes
        for rule in rules {
            if let position = rest.firstIndex(where: { $0.definition.isDeclared(by: rule) }) {
                var index = rest.remove(at: position)
                index.definition.segments = rule.segments
                kept.append(index)
            } else if !kept.contains(where: { $0.definition.isDeclared(by: rule) }) {
                let definition = IndexDefinition(id: nextID, segments: rule.segments, target: rule.target)
                kept.append(Index(definition: definition, state: .building(after: nil)))
                nextID += 1
            }
        }
        indexes = kept
        return rest.map(\.definition)
    }

    /// Notes that a page of `IndexBuilder` was applied. Does nothing when the index was dropped meanwhile.
    public mutating func pageApplied(_ page: IndexPage) {
        guard let position = indexes.firstIndex(where: { $0.definition.id == page.index }) else { return }
        indexes[position].state = page.cursor.map { .building(after: $0) } ?? .ready
    }

    /// The first index that is still building.
    public var building: (definition: IndexDefinition, cursor: IndexCursor?)? {
        for index in indexes {
            if case .building(let cursor) = index.state { return (index.definition, cursor) }
        }
        return nil
    }

    /// The index for a query at `path` in this order, if one is declared and built.
    public func ready(for path: TreePath, _ target: RulesIndex.Target) -> IndexDefinition? {
        indexes.first { $0.isReady && $0.definition.target == target && $0.definition.covers(path) }?.definition
    }
}

/// The progress of a build: where the rows of the next child begin.
public struct IndexCursor: Sendable, Hashable {
    /// The key of the row that records the index.
    public var row: [UInt8]
    /// The number of children that have rows from the build.
    public var children: Int

    public init(row: [UInt8], children: Int = 0) {
        self.row = row
        self.children = children
    }
}

extension IndexCatalog {
    /// The stored form: JSON, so that later versions can extend it.
    public var json: JSONValue {
        let indexes = indexes.map { index -> JSONValue in
            var object: JSONObject = [
                "id": .number(Double(index.definition.id)),
                "segments": .array(index.definition.segments.map(\.json)),
                "on": .string(index.definition.on),
            ]
            if case .building(let cursor) = index.state {
                object["building"] = .array((cursor?.row ?? []).map { .number(Double($0)) })
                object["children"] = .number(Double(cursor?.children ?? 0))
            }
            return .object(object)
        }
        return ["nextID": .number(Double(nextID)), "indexes": .array(indexes)]
    }

    /// Reads the form of `json`; nil for any other value.
    public init?(json: JSONValue) {
        guard let nextID = json["nextID"]?.number.flatMap(UInt32.init(exactly:)), let list = json["indexes"]?.array
        else { return nil }
        self.nextID = nextID
        for element in list {
            guard let id = element["id"]?.number.flatMap(UInt32.init(exactly:)), let on = element["on"]?.string,
                let segments = element["segments"]?.array?.map(RulesIndex.Segment.init(json:)),
                let target = on == ".value" ? .value : (try? TreePath(on)).map(RulesIndex.Target.child)
            else { return nil }
            let known = segments.compactMap { $0 }
            guard known.count == segments.count else { return nil }
            var state = State.ready
            if let bytes = element["building"]?.array {
                let row = bytes.compactMap { $0.number.flatMap(UInt8.init(exactly:)) }
                guard row.count == bytes.count else { return nil }
                // Builds that an earlier version began have no count.
                let children = element["children"]?.number.flatMap(Int.init(exactly:)) ?? 0
                state = .building(after: row.isEmpty ? nil : IndexCursor(row: row, children: children))
            }
            indexes.append(Index(definition: IndexDefinition(id: id, segments: known, target: target), state: state))
        }
    }
}

extension RulesIndex.Segment {
    fileprivate var json: JSONValue {
        switch self {
        case .key(let key): ["key": .string(key.text)]
        case .wildcard(let name, let hidden):
            ["wildcard": .string(name), "except": .array(hidden.sorted().map { .string($0.text) })]
        }
    }

    fileprivate init?(json: JSONValue) {
        if let text = json["key"]?.string, let key = try? TreeKey(text) {
            self = .key(key)
        } else if let name = json["wildcard"]?.string, let except = json["except"]?.array {
            let hidden = except.compactMap { $0.string.flatMap { try? TreeKey($0) } }
            guard hidden.count == except.count else { return nil }
            self = .wildcard(name, except: Set(hidden))
        } else {
            return nil
        }
    }
}

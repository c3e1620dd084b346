import HatoModel
import HatoRPC

/// Finds which recipients are there, where a trigger says how that is seen: a value other than `false` stands at a path
/// of theirs.
struct PresenceReading {
    let source: TriggerSource
    /// The user whose path is not read: the author, which is no recipient.
    let author: String?

    /// Users that are looked up one by one; others count as away.
    private static let usersMax = 1_000
    /// Values that are read at a time.
    private static let readsAtATime = 16
    /// Of the value of one user, in bytes: what is larger is something, too.
    private static let valueBytesMax = 4_096

    /// Those of `uids` that are there.
    func present(among uids: [String], at path: RecipientQuery.TokenPath) async throws -> Set<String> {
        let isOneByOne = path.parent == nil
        var users = Set<String>()
        for uid in uids where uid != author && !uid.isEmpty && (!isOneByOne || users.count < Self.usersMax) {
            users.insert(uid)
        }
        guard !users.isEmpty else { return [] }
        if let parent = path.parent { return try await keys(of: parent).intersection(users) }
        return try await withThrowingTaskGroup(of: String?.self) { group in
            var (present, waiting) = (Set<String>(), Array(users)[...])
            func read(_ uid: String) {
                group.addTask { try await isSomething(at: path.path(of: uid)) ? uid : nil }
            }
            for uid in waiting.prefix(Self.readsAtATime) { read(uid) }
            waiting = waiting.dropFirst(Self.readsAtATime)
            while let uid = try await group.next() {
                if let uid { present.insert(uid) }
                if let uid = waiting.popFirst() { read(uid) }
            }
            return present
        }
    }

    /// The keys of a node below which something stands: one reading in place of one for each user.
    private func keys(of parent: TreePath) async throws -> Set<String> {
        let budget = source.budget
        let bounds = TriggerBudget.NodeBounds(
            textBytesMax: budget.keysTextMax, valueBytesMax: budget.recipientsRead / 2)
        var node: JSONValue?
        do { node = try await source.messages.node(source.database, parent, within: bounds) } catch let error
            as RPCError
        { try source.passOver(error, parent) }
        switch node {
        case .object(let object)?: return Set(object.members.filter { isSomething($0.value) }.map(\.name))
        case .array(let values)?:
            return Set(values.enumerated().filter { isSomething($0.element) }.map { String($0.offset) })
        default: return []
        }
    }

    private func isSomething(at path: TreePath?) async throws -> Bool {
        guard let path else { return false }
        let bounds = TriggerBudget.NodeBounds(
            textBytesMax: Self.valueBytesMax, valueBytesMax: Self.valueBytesMax * TriggerBudget.bytesPerLineByte)
        do {
            return isSomething(try await source.messages.node(source.database, path, within: bounds))
        } catch let error as RPCError {
            if error.isTooBig { return true }
            try source.passOver(error, path)
            return false
        }
    }

    /// A number is a time, in milliseconds since 1970: until then.
    private func isSomething(_ value: JSONValue) -> Bool {
        switch value[".value"] ?? value {
        case .null, .bool(false): false
        case .number(let end): end > Double(source.outbox.time.now())
        default: true
        }
    }
}

extension TriggerSource {
    /// Marks recipients that are there in a list that is being read: their notification is counted, but not shown.
    func markPresent(
        _ query: RecipientQuery, in list: inout RecipientList, beside uids: [String]
    ) async throws -> Set<String> {
        guard let path = query.presence else { return [] }
        let reading = PresenceReading(source: self, author: query.author)
        let present = try await reading.present(among: list.uids + uids, at: path)
        outbox.metrics.recipientsPresent(list.mark(present: present))
        return present
    }
}

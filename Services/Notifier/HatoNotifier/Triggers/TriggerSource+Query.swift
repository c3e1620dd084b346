import HatoModel
import HatoRPC
import HatoStorage

/// Recipients of several kinds, and tokens that stand in the tree.
extension TriggerSource {
    /// Bytes of a text that is read of the tree for a token or a name.
    private static let textBytesMax = 4_096
    /// Tokens that are read at a time.
    private static let tokensAtATime = 16

    func readQuery(_ query: RecipientQuery) async throws -> FeedReadings.Found {
        let tokensMax = query.tokenPath == nil ? 0 : RecipientQuery.tokensMax
        var reading: ListReading
        if let keys = query.keys {
            reading = try await readKeys(keys, gathering: tokensMax)
        } else {
            reading = ListReading(
                time: outbox.store.version, held: [try await budget.reads.reserve(budget.recipientsRead)])
        }
        let (uids, former, bounds) = (try await uids(query), reading.list, bounds)
        reading.list = try await outbox.store.read { snapshot in
            var list = former
            _ = try list.add(Set(uids), in: snapshot, bounds)
            return list
        }
        let forms = try await forms(query, of: reading.uids + uids)
        for device in try await TokenDevices(outbox: outbox).devices(of: forms) where device.state == .active {
            reading.list.add(Recipient(device), bounds)
        }
        return reading.found(as: .query(query), self)
    }

    /// The uids that a query names without the keys of its node: its own, and the values of a node.
    func uids(_ query: RecipientQuery) async throws -> [String] {
        guard let path = query.values else { return query.uids }
        let bounds = TriggerBudget.NodeBounds(
            textBytesMax: budget.keysTextMax, valueBytesMax: budget.recipientsRead / 2)
        var node: JSONValue?
        do { node = try await messages.node(database, path, within: bounds) } catch let error as RPCError {
            try passOver(error, path)
        }
        let values: [JSONValue] =
            switch node {
            case .object(let object)?: object.members.map(\.value)
            case .array(let values)?: values
            default: []
            }
        let texts = values.compactMap { value -> String? in
            guard let text = (value[".value"] ?? value).string, text.utf8.count <= outbox.limits.uidBytesMax else {
                return nil
            }
            return text
        }
        return query.uids + texts.prefix(RecipientQuery.valuesMax)
    }

    /// Devices without users for the tokens of a query, each token once: that of the change, and those of users.
    func forms(_ query: RecipientQuery, of uids: [String]) async throws -> [DeviceRecord] {
        guard let app = query.app else { return [] }
        var tokens = query.token.map { [$0] } ?? []
        if let path = query.tokenPath {
            let users = Set(uids.prefix(RecipientQuery.tokensMax)).subtracting([query.author ?? ""])
            let authors = try await query.author.flatMap { path.path(of: $0) }.asyncMap { try await text($0) } ?? nil
            tokens += try await texts(users.compactMap { path.path(of: $0) }).filter { $0 != authors }
        }
        let (now, all) = (outbox.time.now(), Set(tokens.filter { !$0.isEmpty }))
        let forms = all.compactMap { try? app.device(outbox.newID("dev_"), with: $0, at: now) }
        reportInvalidTokens(all.count - forms.count)
        return forms
    }

    /// A text at a path; nil where there is none.
    func text(_ path: TreePath) async throws -> String? {
        do { return try await messages.text(database, path, bytesMax: Self.textBytesMax) } catch let error as RPCError {
            try passOver(error, path)
            return nil
        }
    }

    private func texts(_ paths: [TreePath]) async throws -> [String] {
        try await withThrowingTaskGroup(of: String?.self) { group in
            var (texts, waiting) = ([String](), paths[...])
            for path in waiting.prefix(Self.tokensAtATime) { group.addTask { try await text(path) } }
            waiting = waiting.dropFirst(Self.tokensAtATime)
            while let text = try await group.next() {
                if let text { texts.append(text) }
                if let path = waiting.popFirst() { group.addTask { try await self.text(path) } }
            }
            return texts
        }
    }
}

extension Optional {
    fileprivate func asyncMap<Result>(
        _ body: (Wrapped) async throws -> Result
    ) async rethrows -> Result? {
        if let self { try await body(self) } else { nil }
    }
}

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
        let present = try await markPresent(query, in: &reading.list, beside: reading.uids + uids)
        let tokens = try await tokens(query, of: (reading.uids + uids).filter { !present.contains($0) })
        let devices = try await TokenDevices(outbox: outbox).devices(of: tokens.map(\.form))
        let users = present.union(reading.uids + uids)
        // The devices of these users are in the list.
        for (token, device) in zip(tokens, devices) where token.reaches(device) && !users.contains(device.uid) {
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

    /// The tokens of a query, each once: that of the change, or those of users.
    func tokens(_ query: RecipientQuery, of uids: [String]) async throws -> [FoundToken] {
        guard let app = query.app else { return [] }
        // Nil: no user is named beside it.
        var owners: [String: Set<String>?] = [:]
        if let token = query.token { owners.updateValue(nil, forKey: token) }
        if let path = query.tokenPath {
            let users = Set(uids.prefix(RecipientQuery.tokensMax)).subtracting([query.author ?? ""])
            let authors = try await query.author.flatMap { path.path(of: $0) }.asyncMap { try await text($0) } ?? nil
            for (uid, token) in try await texts(users, at: path) where token != authors && !token.isEmpty {
                owners[token] = (owners[token] ?? []).map { $0.union([uid]) }
            }
        }
        let now = outbox.time.now()
        let tokens = owners.compactMap { token, owners in
            (try? app.device(outbox.newID("dev_"), with: token, at: now)).map { FoundToken(form: $0, owners: owners) }
        }
        reportInvalidTokens(owners.count - tokens.count)
        return tokens
    }

    /// A text at a path; nil where there is none.
    func text(_ path: TreePath) async throws -> String? {
        do { return try await messages.text(database, path, bytesMax: Self.textBytesMax) } catch let error as RPCError {
            try passOver(error, path)
            return nil
        }
    }

    /// The texts at a path of each user that has one.
    private func texts(
        _ users: Set<String>, at path: RecipientQuery.TokenPath
    ) async throws -> [(uid: String, text: String)] {
        let paths = users.compactMap { uid in path.path(of: uid).map { (uid, $0) } }
        return try await withThrowingTaskGroup(of: (String, String?).self) { group in
            var (texts, waiting) = ([(String, String)](), paths[...])
            for (uid, path) in waiting.prefix(Self.tokensAtATime) { group.addTask { (uid, try await text(path)) } }
            waiting = waiting.dropFirst(Self.tokensAtATime)
            while let (uid, text) = try await group.next() {
                if let text { texts.append((uid, text)) }
                if let (uid, path) = waiting.popFirst() { group.addTask { (uid, try await self.text(path)) } }
            }
            return texts
        }
    }
}

/// A token that a change or the tree holds.
struct FoundToken: Sendable {
    /// A device without a user, for where no device has the token.
    var form: DeviceRecord
    /// The users at whose paths it stands; nil: no user is named beside it.
    var owners: Set<String>?

    /// Whether the device that has the token is notified: not that of another user that registered the token since
    /// it was written down.
    func reaches(_ device: DeviceRecord) -> Bool {
        device.state == .active && (device.uid.isEmpty || owners?.contains(device.uid) != false)
    }
}

extension Optional {
    fileprivate func asyncMap<Result>(
        _ body: (Wrapped) async throws -> Result
    ) async rethrows -> Result? {
        if let self { try await body(self) } else { nil }
    }
}

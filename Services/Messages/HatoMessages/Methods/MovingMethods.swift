import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// `messages.export`, `.import`, `.backup`, `.stats`: what takes as long as there is data.
struct MovingMethods: Sendable {
    let parts: ServiceParts
    let queue: CommitQueue
    let reads: ReadOrder
    let exports: ExportSnapshots
    let backupFolder: BackupFolder?

    private static let exportRowsDefault = 1_000
    /// What a response has beside its result: an id of ordinary length, and the words of JSON-RPC.
    private static let envelopeBytes = 128

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Export.self) { export($0, $1, $2) }
        router.handleInOrder(Messages.Import.self) { importRows($0, $1, $2) }
        router.handleInOrder(Messages.Backup.self) { request, context, reply in
            reads.read(context, reply) { view in
                try view.checkNamed(request.database)
                return try backup(request.name)
            }
        }
        router.handleInOrder(Messages.Stats.self) { request, context, reply in
            reads.onPublisher(context, reply) { registry, view in
                try view.checkNamed(request.database)
                var result = statistics(view)
                result.listeners = registry.listenerCount
                result.followers = registry.followerCount
                reply.succeed(result)
            }
        }
    }

    private func backup(_ name: BackupName) throws -> BackupResult {
        guard let backupFolder else { throw RPCError.backupsOff }
        do {
            guard let version = try backupFolder.write(name.text, of: parts.store) else {
                throw RPCError.backupExists(name)
            }
            return BackupResult(name: name, version: version)
        } catch StoreError.locked {
            throw RPCError.backupRunning
        } catch StoreError.io(let why) {
            throw RPCError.backupFailed(why)
        } catch StoreError.corrupted(let why) {
            throw RPCError.storeDamaged(why)
        }
    }

    private func statistics(_ view: ReadView) -> Messages.Stats.Result {
        let kept = parts.store.keptCommits
        var result = Messages.Stats.Result(
            version: view.snapshot.version, epoch: parts.store.epoch.description, store: parts.store.statistics)
        result.oldestChange = kept.oldest
        result.changeBytes = kept.bytes
        result.databases = view.databases.byName.count
        return result
    }

    // MARK: Export

    private func export(_ request: Messages.Export, _ context: RPCContext, _ reply: RPCReply<Messages.Export>) {
        reads.onReader(context, reply) { view in
            view.note(request.path, of: request.database)
            let database = try view.database(request.database)
            try IssuedTexts.checkSnapshot(request.snapshot)
            let now = parts.now()
            let source = ExportSnapshots.Source(
                name: request.database ?? .default, database: database.id, path: request.path)
            let snapshot: any StoreSnapshot =
                if let handle = request.snapshot { try exports.snapshot(of: handle, source, now: now) } else {
                    (view.lasting ?? view.snapshot).uncached
                }
            let limit = request.limit ?? Self.exportRowsDefault
            guard (1...parts.limits.exportRowsMax).contains(limit) else {
                throw RPCError.invalidArgument(
                    "limit", reason: "invalid_limit", "A page has 1 to \(parts.limits.exportRowsMax) rows, e.g. 1000")
            }
            let page = try ExportPage(
                database: database, path: request.path, after: request.after, rowsMax: limit,
                bytesMax: parts.limits.responseBytesMax / 4,
                unreservedBytesMax: view.bytesMax < parts.limits.responseBytesMax ? view.bytesMax : nil
            ).read(snapshot)
            let handle = try request.snapshot ?? exports.open(snapshot, of: source, now: now)
            if page.after == nil { exports.close(handle) }
            // Written as it is read: most of an export's time would go into making values only to write them.
            var writer = JSONWriter(capacity: page.rows.count + 256)
            writer.beginObject()
            writer.member("snapshot")
            writer.write(handle)
            writer.member("rows")
            writer.write(encoded: page.rows.bytes)
            if let after = page.after {
                writer.member("after")
                writer.write(after)
            }
            writer.endObject()
            if request.snapshot == nil, writer.count > parts.limits.responseBytesMax - Self.envelopeBytes {
                // The handle would not reach the client.
                exports.close(handle)
                throw TreeError.tooBig(bytesMax: parts.limits.responseBytesMax)
            }
            reply.succeed(encoded: EncodedJSON(writer))
        }
    }

    // MARK: Import

    private func importRows(_ request: Messages.Import, _ context: RPCContext, _ reply: RPCReply<Messages.Import>) {
        let mutation: Mutation
        do { mutation = try ImportedRows.mutation(request, rowsMax: parts.limits.importRowsMax) } catch {
            return reply.refuse(error)
        }
        var write = Write(database: request.database ?? .default, mutation: mutation, caller: context.caller)
        write.disablesTriggers = request.disableTriggers == true
        write.watch = parts.slow.watch(context.method, database: request.database)
        queue.submit(write, from: reads.sessions.session(of: context)) { result in
            let done = result.map { Committed(outcome: (), version: $0.version) }
            reply.complete(done.mapError { ImportedRows.naming($0, in: request) }, isIdempotent: request.isIdempotent) {
                Messages.Import.Result(version: $0)
            }
        }
    }
}

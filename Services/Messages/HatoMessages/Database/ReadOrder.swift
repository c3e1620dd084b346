import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Gives every request that reads the state at its place: with all earlier writes of its connection and no later one
/// (protocol §1).
///
/// Called on event loops, in the order of the lines of a connection, like `CommitQueue.submit`. When no write of the
/// connection is on its way, the newest snapshot is that state: later writes are not submitted yet. Else the snapshot
/// is asked for in the queue of writes itself, between those before and those after.
struct ReadOrder: Sendable {
    let parts: ServiceParts
    let sessions: ConnectionSessions
    let publisher: Publisher

    /// Responses with what `body` makes of its view, on a reader's thread.
    func read<Request: RPCRequest>(
        _ context: RPCContext, _ reply: RPCReply<Request>,
        _ body: @escaping @Sendable (ReadView) throws -> Request.Result
    ) {
        onReader(context, reply) { reply.succeed(try body($0)) }
    }

    /// Runs `body` on a reader's thread; what it throws is the response.
    ///
    /// A read that outgrows what it may take without a reservation, in bytes of its result or in rows that it reads
    /// (`TreeError.tooBig`), begins again with the same view (`LargeReading`). A read whose connection has closed is
    /// dropped, or stops. So `body` of a read may run several times, and has no effect before its result is complete.
    func onReader<Request: RPCRequest>(
        _ context: RPCContext, _ reply: RPCReply<Request>, _ body: @escaping @Sendable (ReadView) throws -> Void
    ) {
        let (store, slow, catalogue) = (parts.store, parts.slow, parts.catalogue)
        // Closures that capture all limits are as large as these.
        let (bytesMax, rowsMax) = (parts.limits.responseBytesMax, parts.limits.unreservedReadRowsMax)
        let watch = slow.watch(context.method)
        // An administrator's long reads, such as a backup, do not hold up what else its address asks for.
        let (connection, client, unreservedMax) = (
            context.connection, context.limitedClient, context.unreservedReadBytesMax
        )
        let start = { @Sendable (view: ReadView) in
            store.submitRead(of: client) {
                guard Request.effect == .write || !connection.isClosed else { return }
                watch?.began = slow.now
                let first =
                    Request.effect == .write
                    ? view.watched(by: watch)
                    : view.limited(to: unreservedMax, rowsMax: rowsMax, watchedBy: watch)
                do {
                    try body(first)
                } catch TreeError.tooBig where unreservedMax < view.bytesMax && Request.effect == .read {
                    return LargeReading(
                        view: view.whileOpen(connection), store: store, reply: reply, body: body,
                        answered: { slow.ended(watch, catalogue) }, watch: watch, unreservedMax: unreservedMax,
                        rowsMax: rowsMax
                    ).begin(needsLargest: first.wantsMoreRows)
                } catch { reply.refuse(error) }
                slow.ended(watch, catalogue)
            }
        }
        if sessions.session(of: context).hasPendingWrites {
            atPlace(endsGroup: false, context, reply, start)
        } else {
            do { start(ReadView(try store.snapshot(), catalogue, bytesMax: bytesMax)) } catch { reply.refuse(error) }
        }
    }

    /// Runs `body` on the publisher's thread, after all commits up to its view are published and before the next one;
    /// an error that it throws is the response.
    ///
    /// - Parameter turns: bounds how many of one client are under way; later requests of the connection wait as well.
    func onPublisher<Request: RPCRequest>(
        _ context: RPCContext, _ reply: RPCReply<Request>, turns: ClientTurns? = nil,
        _ body: @escaping @Sendable (ListenerRegistry, ReadView) throws -> Void
    ) {
        let open = { @Sendable [publisher] (view: ReadView, end: @escaping @Sendable () -> Void) in
            publisher.open { registry in
                do { try body(registry, view) } catch { reply.refuse(error) }
                end()
            }
        }
        guard let turns else { return atPlace(endsGroup: true, context, reply) { open($0) {} } }
        let session = sessions.session(of: context)
        session.holdingTurn {
            turns.take(context.client) { end in
                parts.store.submitSnapshot(of: session.client, endsGroup: true) { result in
                    switch result {
                    case .success(let snapshot): open(view(snapshot), end)
                    case .failure(let error):
                        reply.refuse(error)
                        end()
                    }
                }
                session.release()
            }
        }
    }

    private func view(_ snapshot: any StoreSnapshot) -> ReadView {
        ReadView(snapshot, parts.catalogue, bytesMax: parts.limits.responseBytesMax)
    }

    /// On a thread of the writer.
    private func atPlace<Request: RPCRequest>(
        endsGroup: Bool, _ context: RPCContext, _ reply: RPCReply<Request>,
        _ body: @escaping @Sendable (ReadView) -> Void
    ) {
        let session = sessions.session(of: context)
        session.inTurn {
            parts.store.submitSnapshot(of: session.client, endsGroup: endsGroup) { result in
                switch result {
                case .success(let snapshot): body(view(snapshot))
                case .failure(let error): reply.refuse(error)
                }
            }
        }
    }
}

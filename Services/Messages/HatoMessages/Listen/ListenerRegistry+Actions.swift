import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging

extension ListenerRegistry {
    /// Carries out what a listener's state machine has returned.
    ///
    /// - Parameter end: why it ends, if it does and did not ask for it.
    func carryOut(
        _ actions: [ListenerStateMachine.Action], for listener: Listener, end: Listener.Cancellation? = nil
    ) {
        let (topic, connection, id) = (listener.topic, listener.connection, listener.id)
        for action in actions {
            switch action {
            case .search(let version): catchUps.search(listener, after: version)
            case .catchUp: catchUps.begin(listener)
            case .read(let wanted, let oldest): catchUps.read(wanted, from: oldest, for: listener)
            case .stopReading: catchUps.leave(listener)
            case .send(let events): send(events, to: listener)
            case .join(let version): join(listener, after: version)
            case .becomeLive: becomeLive(listener)
            case .leaveLive: topic.leaveLive(listener)
            case .respond(let version, let isUnchanged): respond(listener, version, isUnchanged)
            case .refuse: refuse(listener, end?.error ?? MessagesError.stopping)
            case .sendCancelled:
                if let end { Self.sendCancelled(connection, listener.opening.subscription, end.reason) }
            case .holdResponses(let version): delayedResponses.wait(connection.id, for: id, after: version)
            case .releaseResponses(let version): release(connection.id, by: id, through: version)
            case .awaitVerdict:
                reportResponses(to: listener)
                if delayedResponses.hasResponses(to: connection.id) { authorisations.hurry(listener) }
            case .hurryVerdict: authorisations.hurry(listener)
            case .waitForDrain: catchUps.waitForDrain(listener)
            case .startTimer: startTimer(listener)
            case .reportChange: reportChange(to: listener)
            case .reportRefused: reportRefused(to: listener)
            case .reportResponses: reportResponses(to: listener)
            case .leave: remove(listener)
            }
        }
    }

    func notify(_ listener: Listener, _ members: EncodedJSON) -> Bool {
        listener.connection.notify(
            Messages.Event.method, subscription: listener.opening.subscription, members: members)
    }

    private func send(_ events: [EncodedJSON], to listener: Listener) {
        for members in events {
            guard notify(listener, members) else { return carryOut(listener.machine.refused(), for: listener) }
            parts.metrics.sentEvents(1, bytes: members.count)
        }
        let actions = listener.machine.sent(
            lastChanged: listener.topic.recent.lastChanged,
            newestHeld: delayedResponses.newest(of: listener.connection.id))
        carryOut(actions, for: listener)
    }

    /// Sends what the others were sent since `version`, as soon as its topic is ready; after that it is one of them.
    func join(_ listener: Listener, after version: UInt64) {
        let topic = listener.topic
        switch topic.events {
        case .ready: break
        case .working(let sent) where listener.machine.mayGoOn(at: sent): break
        case .working: return topic.wait(.join(listener.ticket, version))
        // Its window was not kept while the reading waited for its turn: it is read first.
        case .unread: return carryOut(listener.machine.othersWereSent(nil), for: listener)
        }
        carryOut(listener.machine.othersWereSent(topic.recent.sent(after: version)), for: listener)
    }

    /// Responses to its connection wait for what is being computed for its topic.
    private func becomeLive(_ listener: Listener) {
        listener.topic.addLive(listener)
        if case .working(let sent) = listener.topic.events { waitForTopic(listener, after: sent) }
    }

    func waitForTopic(_ listener: Listener, after sent: UInt64) {
        delayedResponses.wait(listener.connection.id, for: listener.topic.id, after: sent)
        listener.topic.waitingConnections.insert(listener.connection.id)
    }

    private func respond(_ listener: Listener, _ version: UInt64, _ isUnchanged: Bool) {
        guard let completion = listener.completion else { return }
        listener.completion = nil
        listener.watch = nil
        var result = Messages.Listen.Result(
            subscription: listener.opening.subscription, version: version, epoch: parts.store.epoch.description)
        if isUnchanged { result.unchanged = true }
        let topic = listener.topic
        if let query = topic.key.query,
            !QueryPlan(query, at: topic.key.path, in: topic.database.indexes).isIndexed
        {
            result.warning = .noIndex
        }
        completion(.success(result))
    }

    private func refuse(_ listener: Listener, _ error: any Error) {
        guard let completion = listener.completion else { return }
        listener.completion = nil
        completion(.failure(error))
    }

    private func startTimer(_ listener: Listener) {
        let id = listener.id
        line.postLater(listener.opening.coalesceMs) { registry in
            guard let listener = registry.listeners[id] else { return }
            let actions = listener.machine.timePassed(lastChanged: listener.topic.recent.lastChanged)
            registry.carryOut(actions, for: listener)
        }
    }

    /// Ends a listener that did not ask for it.
    func cancel(_ listener: Listener, _ end: Listener.Cancellation) {
        carryOut(listener.machine.cancelled(), for: listener, end: end)
    }

    /// Counts what the window of a topic takes now, and ends listeners for which that is too much: those of a client
    /// that has too many, and those of the client with the most when all together have.
    func windowChanged(of topic: Topic) {
        let change = topic.noteWindow()
        guard change != 0 else { return }
        totals.windowChanged(of: topic, by: change)
        guard change > 0 else { return }
        endExcessListeners()
        for listener in topic.listeners {
            if let error = totals.excess(of: listener.opening.client) { cancel(listener, .lost(error)) }
        }
    }

    /// When all listeners take more than they may: ends those of the client that has the most, the newest first.
    private func endExcessListeners() {
        while let error = totals.excess(authorisationBytes: authorisations.byteCount), let client = totals.largestClient
        {
            let held = listeners.values.filter { totals.client(of: $0) == client }.sorted { $0.id > $1.id }
            guard let newest = held.first else { return }
            note(error, of: newest.topic)
            for listener in held where !totals.isWellBelowLimit(authorisationBytes: authorisations.byteCount) {
                cancel(listener, .lost(error))
            }
        }
    }

    private func note(_ error: any Error, of topic: Topic) {
        notices.notice(
            .cancelledListeners, "listeners cancelled",
            [
                "path": "\(parts.slow.shown(topic.key.path, of: topic.database.name, parts.catalogue))",
                "error": "\(error)",
            ], level: .warning)
    }

    func cancelAll(of topic: Topic, for error: any Error) {
        note(error, of: topic)
        for listener in topic.listeners { cancel(listener, .lost(error)) }
    }

    /// The last notification of a subscription: waits for room if there is none, so that it is not lost.
    static func sendCancelled(_ connection: any ListenerPeer, _ subscription: String, _ reason: String) {
        var writer = JSONWriter()
        writer.member("reason")
        writer.write(reason)
        let sent = connection.notify(
            Messages.Cancelled.method, subscription: subscription, members: EncodedJSON(writer))
        if !sent, !connection.isClosed {
            connection.onDrain { sendCancelled(connection, subscription, reason) }
        }
    }
}

import HatoStorage
import HatoTree

// Rights that commits have put in doubt: judged at once as long as that is short, else in later turns of the
// publisher's thread, so that one commit that many rights rest on does not hold up everybody's events and answers.
//
// **Who waits in doubt sees nothing that he may not.** What sends something to a listener is: its topic, which tells
// the live ones; what was read for it, which is for who is `.loading`; and a reading that begins. A listener in doubt
// is neither live nor loading, from the step that finds the doubt on, before the group is told to anybody; a reading
// or a wait from before is void by its ticket, even when it comes back after the doubt is over; and `load` begins
// none for a right in doubt. Only when its right has been judged in the state after the newest group is it read for,
// from that very state. (Whatever comes after that is of a later group, which finds the right again, with what it
// rests on now.)
//
// **And misses nothing.** In doubt it is one of the `others` of its topic, who note what every group changes; what
// was on its way to it when the doubt came is noted as everything. From then on it catches up like one whose socket
// was full: with what is there now at the places it has missed, and then with what the others were sent meanwhile.
//
// **Own answers** wait for who is in doubt if it has missed something, or if their own commit, or a later one, has
// put it there; its right is then judged before others. Whose commit it was that it missed does not matter: the
// answer of a write that found everything as it was to be has the version of the newest commit, which may be
// elsewhere.

extension ListenerRegistry {
    /// Judges the rights that a group has put in doubt, in the state after it, or leaves them to later turns. Returns
    /// the listeners that go on but are shown only that state: between two of the commits they may have had no right.
    func judge(_ doubts: RightDoubts, of group: CommitGroup, after before: UInt64) -> [Listener] {
        var turn = JudgingTurn(parts.limits)
        var kept: [UInt64] = []
        for id in doubts.first.keys.sorted() {
            guard let right = rights[id] else { continue }
            // One that waits already keeps its place.
            if right.isInDoubt || !turn.takesOne() {
                doubt(right, through: group.snapshot.version)
            } else if judge(right) {
                kept.append(id)
            }
        }
        judgeLater()
        let unsure = kept.isEmpty ? [] : doubts.unsure(in: group, rights)
        var passedOver: [Listener] = []
        for right in kept.filter(unsure.contains).compactMap({ rights[$0] }) {
            for listener in right.listeners.values.sorted(by: { $0.id < $1.id }) {
                switch listener.state {
                case .live:
                    heldAnswers.wait(listener.connection.id, for: listener.id, after: told(listener.topic, before))
                    leaveLive(listener, .loading)
                    passedOver.append(listener)
                case .loading: listener.mustReadAgain = true
                case .gathering, .waiting, .inDoubt, .ended: break
                }
            }
        }
        return passedOver
    }

    /// The version up to which the live listeners of a topic have been told; `before` when nothing is being worked out.
    private func told(_ topic: Topic, _ before: UInt64) -> UInt64 {
        if case .working(let told) = topic.telling { min(told, before) } else { before }
    }

    /// It will be read for instead of being told with the others.
    private func leaveLive(_ listener: Listener, _ state: Listener.State) {
        let topic = listener.topic
        listener.forgetMissed()
        // What the others are being told of was not for it either.
        if case .working = topic.telling { listener.missed.addWhole() }
        topic.addOther(listener, state)
    }

    // MARK: In doubt

    /// Leaves a right to a later turn: who lives by it is told nothing until it is judged.
    ///
    /// - Parameter version: of the newest commit that may have ended it.
    private func doubt(_ right: ReadRight, through version: UInt64) {
        let isNew = !right.isInDoubt
        right.doubtedThrough = version
        guard isNew else { return }
        waitingRights.add(right.id)
        for listener in right.listeners.values.sorted(by: { $0.id < $1.id }) {
            // Who waits for room is sent nothing before it is read for.
            if case .waiting = listener.state { continue }
            suspend(listener)
        }
    }

    /// Tells a listener nothing more until its right is judged; `resume` goes on.
    func suspend(_ listener: Listener) {
        let (topic, connection) = (listener.topic, listener.connection.id)
        switch listener.state {
        case .inDoubt, .ended: return
        case .live:
            // Answers that wait until the topic has told its live ones, of which it is none any more, wait for it.
            if case .working(let told) = topic.telling { heldAnswers.wait(connection, for: listener.id, after: told) }
            leaveLive(listener, .inDoubt)
        case .loading:
            listener.missed.addWhole()
            topic.addOther(listener, .inDoubt)
        case .gathering, .waiting: topic.addOther(listener, .inDoubt)
        }
        listener.doubts += 1
        listener.mustReadAgain = false
        doubtful[connection, default: []].insert(listener.id)
        if let right = listener.right, heldAnswers.hasAnswers(to: connection) { waitingRights.hurry(right.id) }
    }

    /// It has ended, or goes on.
    func leaveDoubt(_ listener: Listener) {
        let connection = listener.connection.id
        doubtful[connection]?.remove(listener.id)
        if doubtful[connection]?.isEmpty == true { doubtful[connection] = nil }
    }

    /// A right was in doubt and stands, in the state after the newest group.
    func settle(_ right: ReadRight) {
        right.doubtedThrough = nil
        for listener in right.listeners.values.sorted(by: { $0.id < $1.id }) { resume(listener) }
    }

    /// Brings a listener up to date that was in doubt; it lives by a right that is in none.
    func resume(_ listener: Listener) {
        guard case .inDoubt = listener.state, !listener.isInDoubt, let current else { return }
        leaveDoubt(listener)
        // Answers about what it lacks may still be on their way here.
        heldAnswers.wait(listener.connection.id, for: listener.id, after: 0)
        // What others read before that may be of a version at which it had no right.
        listener.since = max(listener.since, current.version)
        load(listener, .missed(listener.missed))
    }

    /// Before an answer about a version leaves: it may have to wait for listeners in doubt.
    func holdForDoubts(_ connection: UInt64, _ version: UInt64) {
        guard version > 0, let ids = doubtful[connection] else { return }
        for id in ids.sorted() {
            guard let listener = listeners[id], let right = listener.right else { continue }
            guard !listener.missed.isEmpty || right.doubtedThrough ?? 0 >= version else { continue }
            heldAnswers.wait(connection, for: id, after: 0)
            waitingRights.hurry(right.id)
        }
    }

    // MARK: Later turns

    private func judgeLater() {
        guard !isJudging, !waitingRights.isEmpty else { return }
        isJudging = true
        // Behind everything that waits for the thread now.
        line.post { $0.judgeWaiting() }
    }

    private func judgeWaiting() {
        isJudging = false
        var turn = JudgingTurn(parts.limits)
        while !waitingRights.isEmpty, turn.takesOne() {
            guard let right = waitingRights.takeFirst().flatMap({ rights[$0] }), right.isInDoubt else { continue }
            if judge(right) { settle(right) }
        }
        judgeLater()
    }
}

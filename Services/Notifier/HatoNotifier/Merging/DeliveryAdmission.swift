import HatoModel
import HatoPush
import HatoStorage

/// Decides, when a delivery is due, whether it may be sent as it is: what its user prefers, and how often its device is
/// sent something.
struct DeliveryAdmission {
    let head: LaneHead
    let notification: NotificationRecord

    /// A delivery that is sent now.
    struct Admitted {
        var delivery: DeliveryRecord
        /// Without sound.
        var isQuiet = false
    }

    /// Nil: it waits, has ended, or another one of its thread goes in its place.
    func admit(_ draft: inout OutboxDraft) throws -> Admitted? {
        guard let pace = draft.pace, head.delivery.machine.expiresAt > draft.now else {
            return Admitted(delivery: head.delivery)
        }
        let check = PreferenceCheck(notification, to: head.delivery.uid, on: head.device.platform)
        var (delivery, verdict) = (head.delivery, try check.verdict(&draft))
        if case .ended(.muted) = verdict, let others = delivery.pacing?.ofOthersAlone {
            delivery.pacing = others
            verdict = try check.verdict(&draft, isForOthers: true)
        }
        switch verdict {
        case .ended(.muted):
            let thread = notification.options?.thread
            // What a webhook is sent is not known to be silent before it is read.
            let endsAlone = !head.device.platform.showsUser
            try end(because: .muted, &draft) {
                !endsAlone && $0.pacing?.thread == thread && $0.pacing?.passing != .silent
                    && $0.pacing?.ofOthersAlone == nil
            }
            return nil
        case .ended(let ending):
            try end(because: ending, &draft) { _ in true }
            return nil
        case .held(let end):
            // What passes stands behind it, and goes in the same e-mail.
            if delivery.digest != nil, try MailThread(head: delivery).passesQuietWindows(in: draft) {
                return Admitted(delivery: delivery)
            }
            hold(delivery, until: end, by: .quiet, &draft)
            return nil
        case .unconcerned: return Admitted(delivery: delivery)
        case .wanted(let quiet): return try admit(delivery, within: quiet, pace, &draft)
        }
    }

    private func admit(
        _ delivery: DeliveryRecord, within quiet: KnownPreferences.Quiet?, _ pace: SendPace, _ draft: inout OutboxDraft
    ) throws -> Admitted? {
        var delivery = delivery
        if delivery.machine.isUntried {
            let turn = pace.turn(of: &delivery, now: draft.now)
            if turn > draft.now {
                hold(delivery, until: turn, by: .rate, &draft)
                return nil
            }
        }
        if let hold = try hold(of: delivery, quiet, &draft) {
            guard let merged = try ThreadMerge(head: delivery, hold: hold).run(&draft, pace) else { return nil }
            delivery = merged
        }
        var admitted = Admitted(delivery: delivery)
        if case .silent = quiet?.state { admitted.isQuiet = true }
        return admitted
    }

    /// Why one that goes now was held back with others of its thread; nil: it was not, or it goes alone.
    private func hold(
        of delivery: DeliveryRecord, _ quiet: KnownPreferences.Quiet?, _ draft: inout OutboxDraft
    ) throws -> DeliveryStateMachine.Hold? {
        guard delivery.isHeldBack, delivery.pacing?.isNext != true, let thread = delivery.threadPrefix else {
            return nil
        }
        if let hold = delivery.machine.hold { return hold }
        guard let quiet, try draft.transaction.rows(thread, limit: 2).count > 1 else { return nil }
        // What stood behind one that a window held was held by it, too.
        return quiet.hours.state(at: delivery.createdAt).isHold ? .quiet : nil
    }

    /// It waits where it stands, at most until it expires.
    private func hold(
        _ delivery: DeliveryRecord, until end: Int64, by hold: DeliveryStateMachine.Hold, _ draft: inout OutboxDraft
    ) {
        var delivery = delivery
        // At the end of its wait, it goes with what came meanwhile.
        delivery.pacing = delivery.pacing?.with(isNext: false)
        guard case .waitUntil = delivery.machine.held(until: end, by: hold) else { return }
        draft.holds(delivery, from: head.row)
    }

    /// It ends, and those behind it with it, one after the other, as long as they end alike and one transaction takes
    /// more.
    private func end(
        because ending: DeliveryStateMachine.Ending, _ draft: inout OutboxDraft,
        where endsAlike: (DeliveryRecord) -> Bool
    ) throws {
        var (next, dueKey): (DeliveryRecord?, RecordKey) = (head.delivery, head.row)
        while var delivery = next, case .finish = delivery.machine.ended(because: ending, at: draft.now) {
            guard let behind = try draft.finishHead(delivery, dueKey: dueKey), endsAlike(behind),
                draft.writes.count < OutboxDraft.writesMax
            else { return }
            (next, dueKey) = (behind, behind.dueKey)
        }
    }
}

extension DeliveryAdmission.Admitted {
    /// What is sent: with the count of those that went into it, and without sound in a quiet window.
    func content(_ content: DeliveryContent, summary: String?, locale: String?) -> DeliveryContent {
        var content = content
        if let pacing = delivery.pacing, pacing.isTakenBack == true {
            content = content.takenBack(showing: MergeSummary.text(count: pacing.count, template: nil, locale: locale))
        } else if let count = delivery.pacing?.count, count > 1, content.neutralText != nil {
            // The summary of the sender is words, too.
            content.neutralText = MergeSummary.text(count: count, template: nil, locale: locale)
        } else if let count = delivery.pacing?.count, count > 1 {
            let line = MergeSummary.text(count: count, template: summary, locale: locale)
            content.text.body = content.text.body.map { "\(line)\n\($0)" } ?? line
        }
        // It takes the place of one that may be shown: not of one that its receiver refused.
        let isRepeated =
            delivery.pacing?.isTakenBack == true && delivery.machine.lastAttempt.map { $0.status ?? 0 < 400 } == true
        if isQuiet || isRepeated {
            content.appearance.sound = nil
            content.appearance.interruptionLevel = .passive
        }
        return content
    }
}

extension DeliveryContent {
    /// The same without what it says, for others that went into it: a line in place of its texts. Its id and its thread
    /// stay, so that it takes the place of what is shown of it.
    fileprivate func takenBack(showing line: String) -> DeliveryContent {
        var content = self
        (content.data, content.platforms, content.path) = ([:], nil, nil)
        (content.appearance.image, content.appearance.link, content.appearance.category) = (nil, nil, nil)
        if content.neutralText == nil {
            content.text = .init(body: line)
        } else {
            content.neutralText = line
            content.hato.source = .init(path: nil, thread: appearance.thread, category: nil)
        }
        return content
    }
}

/// The line that says how many notifications one shows.
enum MergeSummary {
    /// Where the count stands.
    static let mark = "{count}"

    /// `template` is that of the notification; without one, it is in the language of the device.
    static func text(count: Int, template: String?, locale: String?) -> String {
        let language = locale?.prefix { $0 != "-" && $0 != "_" }.lowercased()
        let neutral = language == "ja" ? "新着メッセージ\(mark)件" : "\(mark) new message\(count == 1 ? "" : "s")"
        let template = template ?? neutral
        return template.replacing(mark, with: String(count))
    }
}

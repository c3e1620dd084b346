import HatoMail
import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Sends the mails of the queue, one after another, in one task: from the rows that are durable, so that no mail is
/// sent for a transaction that is not there, and every other at least once.
final class MailSender: Sendable {
    private struct State {
        /// Of the server, in a row.
        var failures = 0
        /// The ids of mails in a row that the server refused, or at whose own steps it has failed; a few at most.
        var mailsFailed: Set<[UInt8]> = []
        /// When the last of them failed, in milliseconds since 1970.
        var mailFailedAt: Int64 = 0
        /// Milliseconds since 1970; while it is later, no mail is sent.
        var pausedUntil: Int64 = 0
        /// Why the server accepts no mail; nil while it does.
        var problem: String?
        /// Whether the problem came at steps of single mails: the server refused them, or ended the connection (421, or
        /// without a reply). It can be reached.
        var isOfMails = false

        /// Ends what refused mails have shown, some time after the last one: wrong addresses say nothing of the server
        /// for as long as no other mail is sent. Fewer than show anything stay, however far apart they are: a server
        /// that refuses every mail is found where few are sent, too.
        mutating func lapse(now: Int64) {
            guard mailsFailed.count >= mailsFailedMax, (now - mailFailedAt).magnitude >= refusalsCountFor.magnitude
            else { return }
            mailsFailed = []
            if isOfMails { (problem, isOfMails) = (nil, false) }
        }
    }

    private static let refusalsCountFor: Int64 = 3_600_000

    let composer: MailComposer
    private let store: any Store
    private let destination: any MailDestination
    private let environment: AuthEnvironment
    private let limits: AuthLimits
    private let metrics: AuthMetrics
    private let state = Mutex(State())
    private let wakeUp = WakeUp()
    /// What became of a mail, until the store has it: no other mail is sent meanwhile, and this one not again.
    private let unrecorded = Mutex<Ended?>(nil)

    /// A mail after an attempt; `changed` nil: it is done.
    private struct Ended {
        var mail: MailRecord
        var changed: MailRecord?
    }

    /// Nil when mails have no destination.
    init?(
        _ configuration: AuthConfiguration, _ secrets: CodeSecrets, to destination: (any MailDestination)?,
        _ service: Parts
    ) {
        guard let destination, let mail = configuration.mail else { return nil }
        composer = MailComposer(
            configuration: mail, links: configuration.links, secrets: secrets, current: service.current)
        self.destination = destination
        limits = configuration.limits
        store = service.store
        environment = service.environment
        metrics = service.metrics
    }

    /// What it uses of the service.
    struct Parts {
        var current: CurrentConfiguration
        var store: any Store
        var environment: AuthEnvironment
        var metrics: AuthMetrics
    }

    /// Why no mail is accepted; nil while the server takes them.
    var problem: String? {
        let now = environment.now()
        return state.withLock { state in
            state.lapse(now: now)
            return state.problem
        }
    }

    /// The folder, where mails go into one.
    var folder: MailboxFolder? { destination as? MailboxFolder }

    /// Called after a mail was written.
    func wake() { wakeUp.signal() }

    /// Sends until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            var wait = Self.longestWait
            do {
                wait = min(wait, try await sendDue() ?? wait)
            } catch {
                environment.notices.notice(
                    .mailNotSent, "the mail queue cannot be read or written", ["error": "\(error)"], level: .error)
                wait = Self.waitAfterError
            }
            await wakeUp.wait(atMost: .milliseconds(max(1, wait)))
        }
        await destination.close()
    }

    private static let (longestWait, waitAfterError): (Int64, Int64) = (60_000, 5_000)

    /// Sends the mails that are due. Returns the milliseconds until the next one is; nil when none waits.
    func sendDue() async throws -> Int64? {
        try await record()
        while !Task.isCancelled {
            let now = environment.now()
            let pause = state.withLock { $0.pausedUntil } - now
            // A longer one is of a clock that was set back.
            if (1...MailRetryPolicy.longestPause).contains(pause) { return pause }
            let next = try await store.read { rows -> (MailRecord, CodeRecord?)? in
                guard let mail = try MailRows.next(in: rows, isDue: { MailRetryPolicy.isDue($0, now: now) }) else {
                    return nil
                }
                return (mail, try CodeRows.find(mail.code, in: rows))
            }
            guard let (mail, code) = next else {
                noneWaits()
                return nil
            }
            if let nextAt = mail.nextAt, !MailRetryPolicy.isDue(mail, now: now) { return nextAt - now }
            try await send(mail, code, now: now)
        }
        return nil
    }

    private func send(_ mail: MailRecord, _ code: CodeRecord?, now: Int64) async throws {
        // It was used, or a newer one ended it.
        guard let code else { return try await end(mail, with: nil) }
        guard now < mail.until else {
            let isOfUse = now < mail.end(with: code, hasLink: composer.hasLink(mail))
            return try await end(mail, with: MailRetryPolicy.over(mail, isOfUse: isOfUse))
        }
        let composed: ComposedMail
        do { composed = try composer.compose(mail, code, now: now) } catch {
            return try await end(mail, with: MailRetryPolicy.refused(mail, "\(error)"))
        }
        Failpoint.mailBeforeSend.pass()
        let outcome = await destination.send(composed)
        Failpoint.mailAfterSend.pass()
        // The service stops: whether the server has it is not known, so it is sent again.
        if Task.isCancelled, outcome != .accepted { return }
        let random = Double(environment.randomBytes(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) / 4_294_967_296
        switch outcome {
        case .accepted:
            serverTook()
            metrics.count(.mailSent)
            try await end(mail, with: nil)
        case .permanent(let failure):
            if failure.isRefusal, mailFailed(mail) { serverFailed(failure, pauses: false, random: random) }
            metrics.count(.mailRefused)
            try await end(mail, with: MailRetryPolicy.refused(mail, failure.description))
        case .temporary(let failure):
            metrics.count(.mailDelayed)
            var later = MailRetryPolicy.failed(mail, failure.description, now: environment.now(), random: random)
            if failure.concernsServer, !failure.step.isOfOneMail {
                serverFailed(failure, random: random)
                // The server has not seen the mail: it is as due as before.
                later.nextAt = mail.nextAt
            } else if failure.isRefusal, mailFailed(mail) {
                // One mail may itself be why it was refused, or why the connection ended: others go first. Refusals
                // delay no other mail: clients choose the addresses that a server refuses.
                serverFailed(failure, pauses: failure.concernsServer, random: random)
            }
            try await end(mail, with: later)
        }
    }

    /// Records what became of a mail; nil: it is done. One that was dropped meanwhile stays so.
    private func end(_ mail: MailRecord, with changed: MailRecord?) async throws {
        unrecorded.withLock { $0 = Ended(mail: mail, changed: changed) }
        try await record()
    }

    private func record() async throws {
        guard let ended = unrecorded.withLock({ $0 }) else { return }
        _ = try await store.write { [limits] rows in
            guard let found = try MailRows.find(ended.mail.id, in: rows) else { return }
            var change = try MailQueueChange(limits, in: rows)
            if let changed = ended.changed {
                change.replace(found, with: changed, in: rows)
            } else {
                change.delete(found, in: rows)
            }
            change.finish(in: rows)
        }
        unrecorded.withLock { $0 = nil }
    }

    private func serverTook() {
        state.withLock { state in state = State() }
    }

    private static let mailsFailedMax = 3
    /// Counted as failures of the server: the pause stays below a minute, since the server may take other mails.
    private static let refusalsMax = 6

    /// The server refused a mail, or failed at a step of its own. Returns whether it did so for so many in a row that
    /// it is the server's failure; if not, the server can be reached, and other mails are sent.
    private func mailFailed(_ mail: MailRecord) -> Bool {
        let now = environment.now()
        return state.withLock { state in
            state.lapse(now: now)
            if state.mailsFailed.count < Self.mailsFailedMax { state.mailsFailed.insert(mail.id) }
            state.mailFailedAt = now
            guard state.mailsFailed.count < Self.mailsFailedMax else { return true }
            state = State(mailsFailed: state.mailsFailed, mailFailedAt: now)
            return false
        }
    }

    /// Nothing is left by which the server could show that it works again. Refusals in a row stay until it takes a
    /// mail, or they lapse: it has shown that it does not.
    private func noneWaits() {
        let now = environment.now()
        state.withLock { state in
            state.lapse(now: now)
            guard state.mailsFailed.count < Self.mailsFailedMax else { return }
            state = State(mailsFailed: state.mailsFailed, mailFailedAt: state.mailFailedAt)
        }
    }

    /// - Parameter pauses: whether other mails wait; each costs a mail that is refused for good.
    private func serverFailed(_ failure: MailFailure, pauses: Bool = true, random: Double) {
        state.withLock { state in
            (state.problem, state.isOfMails) = (failure.publicWords, failure.step.isOfOneMail)
            guard pauses else { return }
            state.failures = min(state.failures + 1, failure.step.isOfOneMail ? Self.refusalsMax : .max)
            state.pausedUntil =
                environment.now() + MailRetryPolicy.pause(afterFailures: state.failures, random: random)
        }
        environment.notices.notice(
            .mailNotSent, "the mail server takes no mail", ["error": "\(failure.publicWords)"], level: .warning)
    }
}

extension MailFailure {
    /// Whether the server did not take this mail, which it has seen: not a mail that was never given to it.
    fileprivate var isRefusal: Bool { step.isOfOneMail && (code != nil || concernsServer) }

    /// For logs and the health: without the text of a reply that may name a recipient. `auth.mail.list` has it.
    fileprivate var publicWords: String {
        guard step.isOfOneMail else { return description }
        return code.map { "\(step.rawValue): \($0)" } ?? step.rawValue
    }
}

extension MailFailure.Step {
    /// Whether the server knows the recipient.
    fileprivate var isOfOneMail: Bool {
        switch self {
        case .recipient, .data, .content: true
        case .connection, .handshake, .greeting, .hello, .startTLS, .authentication, .sender, .waiting: false
        }
    }
}

/// Lets one task wait for a signal or for time to pass. A signal that comes before is not lost.
final class WakeUp: Sendable {
    private struct State {
        var isSet = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func signal() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            if state.waiter == nil { state.isSet = true }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns at once when the task is cancelled.
    func wait(atMost limit: Duration) async {
        let timer = Task { [self] in
            do { try await Task.sleep(for: limit) } catch { return }
            signal()
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSet = state.withLock { state in
                    if !state.isSet { state.waiter = continuation }
                    defer { state.isSet = false }
                    return state.isSet
                }
                if isSet { continuation.resume() }
            }
        } onCancel: {
            signal()
        }
        timer.cancel()
    }
}

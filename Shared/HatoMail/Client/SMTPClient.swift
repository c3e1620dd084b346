import NIOCore
import Synchronization

/// Gives messages to one server, one after another, over one connection.
///
/// The connection is made when a message comes, and kept for 30 s and 100 messages (`SMTPLimits`); one that the server
/// has ended meanwhile is replaced without failing the message. Nothing is sent twice: what may be tried again is the
/// decision of the caller.
public final class SMTPClient: Sendable {
    private let link: SMTPLink
    private let ids = Atomic<UInt64>(0)

    /// Connects to nothing yet. Throws `MailFieldError` for a file of authorities that cannot be used.
    public init(_ configuration: SMTPConfiguration) throws(MailFieldError) { link = try SMTPLink(configuration) }

    deinit { link.loop.execute { [link] in link.close() } }

    /// Sends a message. When the task is cancelled, the message fails for now, whether or not the server has it.
    public func send(_ message: MailMessage) async -> MailOutcome { await send(SMTPEnvelope(message)) }

    /// Connects and signs in without a message. Returns why a message of this sender would not be taken; nil when the
    /// server takes messages. A connection that is kept already is not tried again.
    public func problem(of sender: MailAddress) async -> MailFailure? {
        switch await send(SMTPEnvelope(probeBy: sender)) {
        case .accepted: nil
        case .temporary(let failure), .permanent(let failure): failure
        }
    }

    private func send(_ envelope: SMTPEnvelope) async -> MailOutcome {
        let id = ids.wrappingAdd(1, ordering: .relaxed).newValue
        let completion = link.loop.makePromise(of: MailOutcome.self)
        let waiting = SMTPLink.Waiting(id: id, envelope: envelope, completion: completion)
        link.loop.execute { [link] in link.add(waiting) }
        return await withTaskCancellationHandler {
            do { return try await completion.futureResult.get() } catch {
                return .temporary(MailFailure(step: .waiting, text: MailProblem.words(error), concernsServer: true))
            }
        } onCancel: {
            link.loop.execute { [link] in link.abandon(id) }
        }
    }

    /// Ends the connection; messages that wait fail for now.
    public func close() async { try? await link.loop.submit { [link] in link.close() }.get() }
}

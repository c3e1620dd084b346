public import HatoFetch
import HatoMail
public import HatoModel

/// Delivers to the mailboxes of users, by the SMTP server of their app: one connection for each app, which is kept for
/// half a minute without an e-mail.
public struct MailChannel: Channel {
    /// Bounds of the attempts.
    public struct Limits: Sendable, Hashable {
        /// Of an attempt, from its turn at the connection of the app to the reply to the content. The same e-mail may
        /// arrive twice when a server takes longer; both have one `Message-ID`.
        public var timeout: Duration = .seconds(45)
        /// Of a check, which sends nothing.
        public var checkTimeout: Duration = .seconds(20)

        public init() {}
    }

    private struct App: Sendable {
        var credentials: MailCredentials
        /// Ends its connection when no attempt and no table has it any more.
        var client: SMTPClient
    }

    public let platform = Notifier.Platform.email
    private let limits: Limits
    private let apps = AppTable<App>()

    /// A channel without credentials.
    public init(limits: Limits = Limits()) { self.limits = limits }

    public func use(_ apps: PushApps) {
        let credentials = apps.apps.compactMapValues(\.mail)
        self.apps.replace { present in
            credentials.reduce(into: [:]) { entries, app in
                // The connection of credentials that stay is used again.
                if let same = present[app.key], same.credentials == app.value { return entries[app.key] = same }
                // It was made before, when the credentials were read.
                guard let client = try? SMTPClient(app.value.configuration) else { return }
                entries[app.key] = App(credentials: app.value, client: client)
            }
        }
    }

    public func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress {
        guard case .email = address else { throw .invalidURL("it is no mailbox") }
        return address
    }

    /// Connects and signs in, on a connection of its own.
    public func problem(of app: String) async -> String? {
        guard let credentials = apps[app]?.credentials, let client = try? SMTPClient(credentials.configuration) else {
            return nil
        }
        let failure = await Self.within(limits.checkTimeout) { await client.problem(of: credentials.from) }
        await client.close()
        let url = credentials.configuration.url
        return failure.map { "The SMTP server \(url.host):\(url.port) cannot be used: \($0)" }
    }

    public func preview(of delivery: Delivery) -> DeliveryPreview? {
        guard case .email(let mailbox) = delivery.address, let credentials = apps[delivery.app]?.credentials,
            let mail = try? MailRequest(delivery, to: mailbox, from: credentials).message
        else { return nil }
        let headers = [
            "from": mail.from.displayName.map { "\($0) <\(mail.from.text)>" } ?? mail.from.text,
            "subject": mail.subject, "message-id": "<\(mail.id)@\(mail.from.domain)>",
        ]
        return DeliveryPreview(headers: headers, body: Array(mail.text.utf8))
    }

    public func deliver(_ delivery: Delivery) async -> DeliveryOutcome {
        guard case .email(let mailbox) = delivery.address else {
            return .rejected(DeliveryResponse(error: "the device is no mailbox"))
        }
        guard let app = apps[delivery.app] else {
            let error = "the app \"\(delivery.app)\" has no mail credentials"
            return .providerRefused(DeliveryResponse(error: error), retryAfter: nil)
        }
        let message: MailMessage
        do { message = try MailRequest(delivery, to: mailbox, from: app.credentials).message } catch {
            return .rejected(DeliveryResponse(error: "the e-mail cannot be made: \(error)"))
        }
        let outcome = await Self.within(limits.timeout) { await app.client.send(message) }
        return MailResponse(outcome: outcome, mailbox: mailbox).deliveryOutcome
    }

    public func shutdown() async {
        var clients: [SMTPClient] = []
        apps.replace { present in
            clients = present.values.map(\.client)
            return [:]
        }
        for client in clients { await client.close() }
    }

    /// Cancels `body` after `limit`; it then says so itself, soon.
    private static func within<Value: Sendable>(
        _ limit: Duration, _ body: @escaping @Sendable () async -> Value
    ) async -> Value {
        let task = Task { await body() }
        let timer = Task {
            try await Task.sleep(for: limit)
            task.cancel()
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

import HatoMail

/// Decides what an SMTP server's replies mean for a delivery.
///
/// | reply | outcome |
/// |---|---|
/// | 250 to the content | delivered |
/// | 4xx to this message, no connection, 421 | tried again |
/// | none after the content | tried again after the pause of its thread: the server may have it |
/// | 5xx before the recipient, a password or TLS that is refused | the server refuses us: the app's e-mails wait |
/// | 5xx to the recipient with 5.1.1, 5.1.2, 5.1.3, 5.1.6, 5.1.10 or 5.2.1 | the mailbox is gone |
/// | 550, 551 or 553 to the recipient without such a code | the address is refused: gone, or our mistake |
/// | any other 5xx | this message is refused |
///
/// Codes: RFC 5321 §4.2, RFC 3463, RFC 7505 (5.1.10).
struct MailResponse: Sendable, Hashable {
    var outcome: MailOutcome
    /// Not shown: a server repeats the address.
    var mailbox: Mailbox

    /// A server that checks contents for long has taken what it did not reply to in time.
    private static let unknownPause = Duration.seconds(600)

    private static let goneCodes: Set = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]

    /// Shorter local parts stand in words that have nothing to do with them.
    private static let localBytesMin = 3

    var deliveryOutcome: DeliveryOutcome {
        switch outcome {
        case .accepted: .delivered(DeliveryResponse(status: 250))
        case .temporary(let failure): temporary(failure)
        case .permanent(let failure): permanent(failure)
        }
    }

    private func temporary(_ failure: MailFailure) -> DeliveryOutcome {
        if failure.step == .waiting { return .postponed(response(failure)) }
        if failure.step == .content, failure.code == nil {
            return .failed(response(failure), retryAfter: Self.unknownPause)
        }
        guard failure.concernsServer else { return .failed(response(failure, failure.code), retryAfter: nil) }
        // Without a status it is a failure of the provider, whatever the code.
        return Self.isRefusal(failure)
            ? .providerRefused(response(failure), retryAfter: nil) : .failed(response(failure), retryAfter: nil)
    }

    /// Whether an operator has to change something, here or at the server.
    private static func isRefusal(_ failure: MailFailure) -> Bool {
        if let code = failure.code { return code >= 500 }
        return switch failure.step {
        case .handshake, .startTLS, .authentication: true
        case .connection, .greeting, .hello, .sender, .recipient, .data, .content, .waiting: false
        }
    }

    private func permanent(_ failure: MailFailure) -> DeliveryOutcome {
        let response = response(failure, failure.code)
        guard failure.step == .recipient else { return .rejected(response) }
        guard let code = Self.enhancedCode(failure.text) else {
            return [550, 551, 553].contains(failure.code) ? .tokenRefused(response) : .rejected(response)
        }
        return Self.goneCodes.contains(code) ? .deviceGone(response, since: nil) : .rejected(response)
    }

    /// Such as `5.1.1`, at the beginning of the text.
    private static func enhancedCode(_ text: String) -> String? {
        guard let word = text.split(separator: " ").first else { return nil }
        let parts = word.split(separator: ".", omittingEmptySubsequences: false)
        let isCode =
            parts.count == 3 && parts.allSatisfy { (1...3).contains($0.utf8.count) && $0.allSatisfy(\.isNumber) }
        return isCode ? String(word) : nil
    }

    private func response(_ failure: MailFailure, _ status: Int? = nil) -> DeliveryResponse {
        let address = mailbox.address.lowercased()
        let words = failure.description.split(separator: " ", omittingEmptySubsequences: false)
        let local = address.split(separator: "@").first.map(String.init) ?? address
        let hidden = local.utf8.count >= Self.localBytesMin ? local : address
        let text = words.map { $0.lowercased().contains(hidden) ? "(the address)" : String($0) }
        return DeliveryResponse(status: status, error: text.joined(separator: " "))
    }
}

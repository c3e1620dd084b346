import HatoModel
import NIOHTTP1

/// Why there is no access token.
struct FCMTokenFailure: Error, Hashable {
    /// What it means for a delivery.
    var outcome: DeliveryOutcome
}

/// An access token of Google's.
struct FCMAccessToken: Sendable, Hashable {
    var text: String
    /// For how long it is used.
    var lifetime: Duration

    private static let textBytesMax = 4_096
    /// It is replaced so long before its end.
    private static let margin = 300.0
    /// One that ends sooner is used for so long all the same: else each push would want a token of its own.
    private static let secondsMin = 30.0
    private static let secondsMax = 12 * 3_600.0

    /// Reads the response of the token endpoint; `secrets` do not get into errors. `now` in seconds since 1970.
    static func read(
        _ response: FCMReceived, secrets: [String], now: Int64
    ) -> Result<FCMAccessToken, FCMTokenFailure> {
        let json = try? JSONParser.parse(response.body, depth: 16)
        // Of a body without these, nothing is shown: it may have a token.
        let words = [json?["error"]?.string, json?["error_description"]?.string].compactMap { $0 }
        let said = words.isEmpty ? "" : response.excerpt(words.joined(separator: ": "), without: secrets)
        func failed(_ what: String) -> DeliveryResponse {
            DeliveryResponse(status: response.status, error: said.isEmpty ? what : "\(what): \(said)")
        }
        switch response.status {
        case 200..<300:
            guard let text = json?["access_token"]?.string, (1...textBytesMax).contains(text.utf8.count),
                text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else {
                // What it sent instead may be part of a token.
                let error = "the token endpoint sent no access token"
                let response = DeliveryResponse(status: response.status, error: error)
                return .failure(.init(outcome: .providerRefused(response, retryAfter: nil)))
            }
            let seconds = min(max((json?["expires_in"]?.number ?? 3_600) - margin, secondsMin), secondsMax)
            return .success(FCMAccessToken(text: text, lifetime: .seconds(seconds)))
        case 408, 429, 500...:
            let delay = RetryAfter.delay(response.retryAfter, now: now)
            return .failure(.init(outcome: .failed(failed("the token endpoint failed"), retryAfter: delay)))
        default:
            let refused = failed("the token endpoint refuses the service account")
            return .failure(.init(outcome: .providerRefused(refused, retryAfter: nil)))
        }
    }
}

/// A response of Google's, as far as it was read.
struct FCMReceived: Sendable, Hashable {
    var status: Int
    var retryAfter: String?
    var body: [UInt8]

    init(status: Int, retryAfter: String? = nil, body: [UInt8]) {
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
    }

    init(_ response: BoundedCall.Response) {
        self.init(
            status: response.status, retryAfter: response.headers.first(name: "retry-after"), body: response.body)
    }

    /// The words of an error, or the body, as one short line without `secrets`.
    func excerpt(_ words: String?, without secrets: [String]) -> String {
        var text = words ?? String(decoding: body, as: UTF8.self)
        // First the secrets, then the cut: one could be left of a secret.
        for secret in secrets where !secret.isEmpty { text = text.replacing(secret, with: "…") }
        return BoundedCall.Response.excerpt(of: text.utf8)
    }
}

/// The access token of one service account: all sends that need one wait for the same request.
actor FCMAccessTokens {
    private let fetch: @Sendable () async -> Result<FCMAccessToken, FCMTokenFailure>
    /// Since a fixed moment, going on at the same pace whatever the clock is set to.
    private let elapsed: @Sendable () -> Duration
    private var kept: (text: String, until: Duration)?
    private var flight: Task<Result<FCMAccessToken, FCMTokenFailure>, Never>?

    /// `fetch` ends within a time limit of its own.
    init(
        elapsed: @escaping @Sendable () -> Duration,
        fetch: @escaping @Sendable () async -> Result<FCMAccessToken, FCMTokenFailure>
    ) {
        self.elapsed = elapsed
        self.fetch = fetch
    }

    /// - Parameter refused: a token that FCM refused; another one is returned, which may have come meanwhile.
    func token(insteadOf refused: String? = nil) async throws(FCMTokenFailure) -> String {
        if let kept, kept.text != refused, elapsed() < kept.until { return kept.text }
        let flight = self.flight ?? start()
        return try await flight.value.get().text
    }

    /// Not a child of the send that begins it: others wait for it, too.
    private func start() -> Task<Result<FCMAccessToken, FCMTokenFailure>, Never> {
        let began = elapsed()
        let task = Task {
            let result = await fetch()
            flight = nil
            if case .success(let token) = result { kept = (token.text, began + token.lifetime) }
            return result
        }
        flight = task
        return task
    }
}

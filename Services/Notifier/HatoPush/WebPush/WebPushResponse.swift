/// Decides what a push service's response means (RFC 8030 §5, §7.3, §8.4).
///
/// The endpoint is what a user gave, so no response of it says anything about the app: 401 and 403 mean that this
/// endpoint does not take our signature, for instance since it was made for another key. They are failures of the one
/// device and stop nothing that the app sends. They do not end a subscription that worked: the mistake may be ours.
struct WebPushResponse: Hashable {
    var status: Int
    var retryAfter: String?
    /// The push service's URL of the message.
    var location: String?
    /// The beginning of the response's body.
    var excerpt: String

    private static let locationBytesMax = 256

    /// `now` in seconds since 1970, for the form of `Retry-After` that is a date.
    func outcome(now: Int64) -> DeliveryOutcome {
        switch status {
        case 200..<300: .delivered(DeliveryResponse(status: status, providerID: providerID))
        case 404, 410: .deviceGone(response("the subscription is gone"), since: nil)
        case 400: .failed(response("the push service refuses the request"), retryAfter: nil)
        case 413: .rejected(response("the push service finds the body too large"))
        case 401, 403: .failed(response("the push service refuses the signature"), retryAfter: nil)
        case 429, 503: .failed(response("the push service is busy"), retryAfter: RetryAfter.delay(retryAfter, now: now))
        case 300..<400: .failed(response("redirects are not followed"), retryAfter: nil)
        default: .failed(response("the push service failed"), retryAfter: nil)
        }
    }

    private var providerID: String? {
        location.flatMap { $0.isEmpty ? nil : String(decoding: $0.utf8.prefix(Self.locationBytesMax), as: UTF8.self) }
    }

    private func response(_ what: String) -> DeliveryResponse {
        DeliveryResponse(status: status, error: excerpt.isEmpty ? what : "\(what): \(excerpt)")
    }
}

import HatoFirebase
import HatoModel

extension GatewayLimits {
    /// Those that few operators need, behind the others in `--help`.
    static let ofDetails: [Limit<GatewayLimits>] = ofRequests + ofSessions + ofAccounts

    /// What a line of a service takes, without its envelope.
    private static let lineBytesMax = (16 << 20) - 1_024

    private static let ofRequests: [Limit<GatewayLimits>] = [
        Limit("headers-max", \.headersMax, 8...10_000, "headers of a request"),
        Limit(
            "compressed-bytes-min", \.compressedBytesMin, 1...1 << 30,
            "bytes of the body of a response from which it is compressed for clients that take gzip"),
        Limit(
            "stopped-response-bytes-max", \.stoppedResponseBytesMax, 0...1 << 30,
            "bytes of the response to a read of a client that has not taken others; a larger one becomes 503"),
        Limit(
            "lingering-ms-max", \.lingeringMsMax, 1...600_000,
            "milliseconds for which a client that still sends is read behind its last response or close frame"),
        Limit(
            "counted-addresses-max", \.countedAddressesMax, 1_024...1 << 24,
            "addresses with a count of their requests; twice as many are kept, then those that came first begin anew"),
        Limit("write-values-max", \.rest.valuesMax, 1...1 << 30, "values of one write of the REST interface"),
        Limit(
            "values-per-second", \.rest.valuesPerSecond, 1...1 << 30,
            "values that are estimated to be written in a second, for writeSizeLimit: tiny is a second, small 10, "
                + "medium 30, large 60"),
        Limit(
            "params-bytes-max", \.session.callBytesMax, 1 << 16...lineBytesMax,
            "bytes of the params of one call of a service; a write with more is refused as too large"),
    ]

    private static let ofSessions: [Limit<GatewayLimits>] = [
        Limit(
            "message-bytes-max", \.polls.messageBytesMax, 1 << 16...16 << 20,
            "bytes of one message of a socket or a polling session"),
        Limit(
            "finishing-ms-max", \.finishingMsMax, 1...3_600_000,
            "milliseconds in which a service must take what the client of a native socket has sent before it closed"),
        Limit(
            "request-bytes-in-flight-max", \.session.requestBytesInFlightMax, 1_024...1 << 30,
            "bytes of requests of one session without a response, above which it is not read"),
        Limit(
            "held-response-bytes-max", \.session.heldResponseBytesMax, 1_024...1 << 30,
            "bytes of responses of one session that wait for the response of an earlier request; with more it is closed"
        ),
        Limit(
            "listen-bytes-max", \.session.listenBytesMax, 1_024...1 << 30,
            "bytes of the paths and queries of the listens of one session"),
        Limit("query-bytes-max", \.session.queryBytesMax, 1_024...1 << 24, "bytes of one query of a session"),
        Limit(
            "credential-bytes-max", \.session.credentialBytesMax, 1_024...1 << 24,
            "bytes of a credential that a session shows"),
        Limit(
            "index-retry-ms", \.session.indexRetryMs, 1...600_000,
            "milliseconds between two tries of a query that waits for its index"),
        Limit(
            "auth-end-ms-max", \.session.authEndMsMax, 1...600_000,
            "milliseconds in which the client of a session must close when its token has ended"),
    ]

    private static let ofAccounts: [Limit<GatewayLimits>] = [
        Limit(
            "form-bytes-max", \.accounts.formBytesMax, 1_024...1 << 24,
            "bytes of a form of the pages behind links"),
        Limit(
            "body-memory-per-byte-max", \.accounts.bodyMemoryPerByteMax, 1...1_000,
            "bytes of memory that the values of a body may take for each byte that the longest body has"),
        Limit(
            "token-bytes-max", \.accounts.tokenBytesMax, 1_024...1 << 20,
            "bytes of an ID token or a refresh token; a longer text is none"),
        Limit(
            "identifiers-max", \.accounts.identifiersMax, 1...1_000,
            "identifiers in one look-up of accounts by an administrator"),
        Limit(
            "accounts-max", \.accounts.accountsMax, 1...1_000,
            "accounts of one import, export or deletion by an administrator"),
        Limit(
            "query-offset-max", \.accounts.queryOffsetMax, 0...1 << 30, "accounts before the first one of a query"),
        Limit(
            "codes-max", \.accounts.codesMax, 1...1_000_000, "codes of mails that an emulator keeps for oobCodes"),
    ]
}

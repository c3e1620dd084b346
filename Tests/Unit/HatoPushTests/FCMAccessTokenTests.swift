import HatoModel
import HatoTesting
import Synchronization
import Testing

@testable import HatoPush

/// A token endpoint: each of its tokens has the number of the request, and the test says when a response comes.
private final class TokenEndpoint: Sendable {
    private struct State {
        var requests = 0
        var elapsed = Duration.zero
        var results: [Result<FCMAccessToken, FCMTokenFailure>] = []
    }

    private let state = Mutex(State())
    private let gate: AsyncStream<Void>
    private let opened: Task<Void, Never>
    let open: AsyncStream<Void>.Continuation

    init(results: [Result<FCMAccessToken, FCMTokenFailure>] = []) {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        self.gate = gate
        self.open = open
        opened = Task { for await _ in gate {} }
        state.withLock { $0.results = results }
    }

    var requests: Int { state.withLock { $0.requests } }
    func wait(_ duration: Duration) { state.withLock { $0.elapsed += duration } }

    var tokens: FCMAccessTokens {
        FCMAccessTokens(
            elapsed: { self.state.withLock { $0.elapsed } },
            fetch: {
                let (number, result) = self.state.withLock { state in
                    state.requests += 1
                    return (state.requests, state.results.isEmpty ? nil : state.results.removeFirst())
                }
                await self.opened.value
                return result ?? .success(FCMAccessToken(text: "token-\(number)", lifetime: .seconds(3_299)))
            })
    }
}

@Suite(.timeLimit(.minutes(10))) struct FCMAccessTokenTests {
    private static let now: Int64 = 1_795_000_000

    @Test func allSendsWaitForOneRequest() async throws {
        let endpoint = TokenEndpoint()
        let tokens = endpoint.tokens
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 { group.addTask { try await tokens.token() } }
            try await eventually("one has asked") { endpoint.requests > 0 }
            endpoint.open.finish()
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(texts == ["token-1"] && endpoint.requests == 1)
    }

    @Test func aTokenIsUsedUntilFiveMinutesBeforeItsEnd() async throws {
        let endpoint = TokenEndpoint()
        endpoint.open.finish()
        let tokens = endpoint.tokens
        #expect(try await tokens.token() == "token-1")
        endpoint.wait(.seconds(3_298))
        #expect(try await tokens.token() == "token-1")
        endpoint.wait(.seconds(1))
        #expect(try await tokens.token() == "token-2")
        #expect(endpoint.requests == 2)
    }

    @Test func aRefusedTokenIsReplacedOnceForAll() async throws {
        let endpoint = TokenEndpoint()
        endpoint.open.finish()
        let tokens = endpoint.tokens
        let first = try await tokens.token()
        #expect(try await tokens.token(insteadOf: first) == "token-2")
        #expect(try await tokens.token(insteadOf: first) == "token-2")
        #expect(try await tokens.token() == "token-2")
        #expect(endpoint.requests == 2)
    }

    @Test func aFailureIsNotKept() async throws {
        let failure = FCMTokenFailure(outcome: .failed(DeliveryResponse(error: "e"), retryAfter: nil))
        let endpoint = TokenEndpoint(results: [.failure(failure)])
        endpoint.open.finish()
        let tokens = endpoint.tokens
        await #expect(throws: failure) { try await tokens.token() }
        #expect(try await tokens.token() == "token-2")
    }

    private func read(
        _ status: Int, _ body: String, retryAfter: String? = nil
    ) -> Result<FCMAccessToken, FCMTokenFailure> {
        FCMAccessToken.read(
            FCMReceived(status: status, retryAfter: retryAfter, body: Array(body.utf8)), secrets: ["ASSERTION"],
            now: Self.now)
    }

    @Test(arguments: [
        ("3599", 3_299), ("300", 30), ("-1e300", 30), ("1e300", 43_200), ("\"x\"", 3_300), ("null", 3_300),
    ])
    func theLifetimeIsBounded(expiresIn: String, seconds: Int) throws {
        let token = try read(200, #"{"access_token":"ya29.a","expires_in":\#(expiresIn),"token_type":"Bearer"}"#).get()
        #expect(token == FCMAccessToken(text: "ya29.a", lifetime: .seconds(seconds)))
    }

    @Test(arguments: [
        "", "garbage", "{}", #"{"access_token":5}"#, #"{"access_token":""}"#, #"{"access_token":"a\r\nb: c"}"#,
        #"{"id_token":"secret"}"#,
    ])
    func aResponseWithoutATokenIsARefusal(body: String) {
        let expected = DeliveryResponse(status: 200, error: "the token endpoint sent no access token")
        #expect(read(200, body) == .failure(.init(outcome: .providerRefused(expected, retryAfter: nil))))
    }

    @Test(arguments: [400, 401, 403, 404, 302])
    func anEndpointThatRefusesTheAccountStopsTheApp(status: Int) {
        let body = #"{"error":"invalid_grant","error_description":"Invalid JWT ASSERTION"}"#
        let expected = DeliveryResponse(
            status: status,
            error: "the token endpoint refuses the service account: invalid_grant: Invalid JWT …")
        #expect(read(status, body) == .failure(.init(outcome: .providerRefused(expected, retryAfter: nil))))
    }

    @Test(arguments: [(408, nil), (429, 5), (500, nil), (503, 5)] as [(Int, Int?)])
    func anEndpointThatFailsIsAskedAgain(status: Int, seconds: Int?) {
        let expected = DeliveryResponse(status: status, error: "the token endpoint failed")
        #expect(
            read(status, #"{"access_token":"ya29.a"}"#, retryAfter: seconds.map { String($0) })
                == .failure(.init(outcome: .failed(expected, retryAfter: seconds.map { .seconds($0) }))))
    }
}

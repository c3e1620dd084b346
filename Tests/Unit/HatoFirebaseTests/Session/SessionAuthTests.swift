import HatoModel
import Testing

@testable import HatoFirebase

/// Signing in and out on a session, and the end of tokens (spec realtime-database §8.4).
@Suite struct SessionAuthTests {
    /// A token with the claims of the specification.
    private static let claims =
        #"{"sub":"u1","iat":1,"exp":3601,"firebase":{"sign_in_provider":"anonymous","identities":{}}}"#
    private static let token =
        "eyJhbGciOiJFUzI1NiJ9." + Base64.url.encode(Array(claims.utf8)) + "." + Base64.url.encode([1, 2, 3])

    private func signedIn(_ session: inout SessionScript) {
        _ = session.asks(1, "auth", "{\"cred\":\"\(Self.token)\"}")
        _ = session.succeeds(1, #"{"uid":"u1","admin":false,"expiresAt":3601000}"#)
    }

    @Test func tokenSignsIn() {
        var session = SessionScript()
        #expect(session.asks(1, "auth", "{\"cred\":\"\(Self.token)\"}") == ["authenticate 1 token \(Self.token)"])
        let auth = "{\"uid\":\"u1\",\"provider\":\"anonymous\",\"token\":\(Self.claims)}"
        #expect(
            session.succeeds(1, #"{"uid":"u1","admin":false,"expiresAt":3601000}"#) == [
                "schedule tokenEnd at(3601000)", response(1, "ok", "{\"auth\":\(auth),\"expires\":3601}"),
            ])
    }

    @Test func administratorHasNoIdentity() {
        var session = SessionScript()
        #expect(session.asks(1, "gauth", #"{"cred":"owner"}"#) == ["authenticate 1 opaque owner"])
        #expect(
            session.succeeds(1, #"{"uid":null,"admin":true,"expiresAt":null}"#)
                == ["cancel tokenEnd", response(1, "ok", #"{"auth":null}"#)])
    }

    @Test func administratorSpeaksForOthers() {
        let rows = [
            (#""noauth":true"#, " as null"), (#""authvar":{"uid":"x"}"#, #" as {"uid":"x"}"#), (#""noauth":false"#, ""),
            (#""authvar":null"#, ""), ("\"authvar\":{\n\"uid\":\"x\"}", " as { \"uid\":\"x\"}"),
        ]
        for (member, override) in rows {
            var session = SessionScript()
            #expect(
                session.asks(1, "gauth", "{\"cred\":\"owner\",\(member)}") == ["authenticate 1 opaque owner\(override)"]
            )
        }
        var session = SessionScript()
        _ = session.asks(1, "gauth", "{\"cred\":\"\(Self.token)\",\"authvar\":{\"uid\":\"x\"}}")
        #expect(
            session.succeeds(1, #"{"uid":"x","admin":false,"expiresAt":null}"#)
                == ["cancel tokenEnd", response(1, "ok", #"{"auth":null}"#)])
    }

    @Test func credentialsBecomeParamsInOneLine() {
        let rows: [(SessionCredential.Override, String)] = [
            (.none, ""), (.signedOut, #","as":null"#),
            (.variable(Array(#"{"uid":"x"}"#.utf8)), #","as":{"variable":{"uid":"x"}}"#),
        ]
        for (override, end) in rows {
            let credential = SessionCredential("a\"\n", isToken: false, override: override)
            #expect(String(decoding: credential.params(), as: UTF8.self) == "{\"auth\":\"a\\\"\\n\"\(end)}")
            #expect(String(decoding: credential.params(auth: "key"), as: UTF8.self) == "{\"auth\":\"key\"\(end)}")
        }
    }

    @Test func signingOutGetsItsText() {
        var session = SessionScript()
        signedIn(&session)
        #expect(session.asks(2, "unauth", "{}") == ["call 2 session.end {}"])
        #expect(session.succeeds(2, "{}") == ["cancel tokenEnd", response(2, "ok", #""unauthenticated""#)])
    }

    @Test func wrongCredentialsGetTheirWords() {
        let rows: [(RPCError.Code, String, String, String)] = [
            (.unauthenticated, "INVALID_ID_TOKEN", "invalid_token", "Could not parse auth token."),
            (.unauthenticated, "TOKEN_EXPIRED", "expired_token", "Auth token is expired."),
            (.permissionDenied, "permission_denied", "permission_denied", "Permission denied"),
            (.invalidParams, "credential_too_long", "invalid_token", "It is so"),
            (.invalidArgument, "invalid_as", "invalid_token", "It is so"),
        ]
        for (code, reason, word, text) in rows {
            var session = SessionScript()
            _ = session.asks(1, "auth", #"{"cred":"x"}"#)
            #expect(session.refuses(1, code, reason) == [response(1, word, "\"\(text)\"")])
        }
    }

    @Test func credentialThatIsTooLongIsWrong() {
        var session = SessionScript()
        let text = String(repeating: "x", count: SessionLimits().credentialBytesMax + 1)
        #expect(
            session.asks(1, "auth", "{\"cred\":\"\(text)\"}")
                == [response(1, "invalid_token", "\"Could not parse auth token.\"")])
    }

    @Test func outageIsNoResponseToAuth() {
        let rows: [(RPCError.Code, String)] = [
            (.unavailable, "key_not_fetched"), (.unavailable, "auth_unavailable"), (.unavailable, "stopping"),
            (.resourceExhausted, "busy"), (.internalError, "internal"), (.methodNotFound, "method_not_found"),
        ]
        for (code, reason) in rows {
            var session = SessionScript()
            _ = session.asks(1, "auth", #"{"cred":"x"}"#)
            #expect(session.refuses(1, code, reason, retryable: true) == ["close outage(\"\(reason)\")"])
        }
    }

    @Test func endOfATokenIsOnePushAndNothingElse() {
        for reason in ["token_expired", "token_revoked"] {
            var session = SessionScript()
            session.listens(1, "/a", "l1")
            session.listens(2, "/b", "l2")
            #expect(
                session.cancels("l1", reason)
                    == ["cancel tokenEnd", "schedule authEnd after(10000)", tokenEnd])
            #expect(session.cancels("l2", reason).isEmpty)
            #expect(session.asks(3, "p", #"{"p":"/a","d":1}"#).isEmpty)
            #expect(session.handle(.timerFired(.authEnd)) == ["close tokenEnded"])
        }
    }

    @Test func timerEndsTheTokenWithoutListens() {
        var session = SessionScript()
        signedIn(&session)
        #expect(
            session.handle(.timerFired(.tokenEnd)) == ["cancel tokenEnd", "schedule authEnd after(10000)", tokenEnd])
        #expect(session.handle(.timerFired(.tokenEnd)).isEmpty)
    }

    @Test func tokenThatIsBeingReplacedDoesNotEnd() {
        var session = SessionScript()
        signedIn(&session)
        _ = session.asks(2, "auth", #"{"cred":"y"}"#)
        #expect(session.handle(.timerFired(.tokenEnd)).isEmpty)
        _ = session.succeeds(2, #"{"uid":"u1","admin":false,"expiresAt":9000000}"#)
        #expect(session.asks(3, "s", "{}") == [response(3, "ok")])
    }

    @Test func requestThatMeetsAnEndedTokenGetsNoResponse() {
        var session = SessionScript()
        signedIn(&session)
        _ = session.asks(2, "p", #"{"p":"/a","d":1}"#)
        #expect(
            session.refuses(2, .unauthenticated, "TOKEN_EXPIRED")
                == ["cancel tokenEnd", "schedule authEnd after(10000)", tokenEnd])
    }

    /// Else the client would write again what was written.
    @Test func earlierWritesGetTheirResponsesBeforeTheEndOfTheToken() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "p", #"{"p":"/a","d":1}"#)
        _ = session.asks(3, "p", #"{"p":"/a","d":2}"#)
        #expect(session.cancels("l1", "token_expired") == ["cancel tokenEnd", "schedule authEnd after(10000)"])
        #expect(session.asks(4, "p", #"{"p":"/a","d":3}"#).isEmpty)
        #expect(session.succeeds(2, "{}") == [response(2, "ok")])
        #expect(session.refuses(3, .unauthenticated, "TOKEN_EXPIRED") == [tokenEnd])
    }

    @Test func listenWithoutItsFirstValueGetsNoResponseAtTheEndOfTheToken() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        _ = session.succeeds(1, #"{"subscription":"l1","version":1,"epoch":"e"}"#)
        #expect(
            session.cancels("l1", "token_expired") == ["cancel tokenEnd", "schedule authEnd after(10000)", tokenEnd])
    }

    @Test func endOfATokenIsSentInTimeEvenWhenAResponseIsMissing() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "p", #"{"p":"/a","d":1}"#)
        _ = session.cancels("l1", "token_expired")
        #expect(session.handle(.timerFired(.authEnd)) == [tokenEnd, "close tokenEnded"])
    }

    @Test func rightsAreLostWithTheIdentity() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "unauth", "{}")
        #expect(session.cancels("l1", "permission_denied") == [push("c", #""p":"a""#)])
        #expect(session.succeeds(2, "{}") == ["cancel tokenEnd", response(2, "ok", #""unauthenticated""#)])
    }
}

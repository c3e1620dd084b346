import NIOHTTP1
import Testing

@testable import HatoGateway

/// What heads say about hosts, bodies and expectations (RFC 9110, RFC 9112).
@Suite struct RequestFramingTests {
    private func framing(
        _ headers: HTTPHeaders, _ version: HTTPVersion = .http1_1, uri: String = "/a.json"
    ) -> RequestFraming {
        RequestFraming(HTTPRequestHead(version: version, method: .PUT, uri: uri, headers: headers))
    }

    @Test func oneHostIsNeeded() {
        #expect(framing([:]).problem == .noHost && framing([:], .http1_0).problem == nil)
        #expect(framing(["Host": "a", "host": "a"]).problem == .manyHosts)
        for host in ["", "a", "a_b.example.com:80", "[::1]:7700", "LOCALHOST.", "a \t", "xn--1", "a%20b"] {
            #expect(framing(["Host": host]).problem == nil, "\(host)")
        }
        for host in ["a b", "a\"<>", "a@b", "a/b", "a?b", "a#b", "\u{3042}", "a\\b", "a|b"] {
            #expect(framing(["HOST": host]).problem == .wrongHost, "\(host)")
        }
    }

    @Test func onlyProbesOfTheHealthNeedNoHost() {
        #expect(framing([:], uri: "/healthz").problem == nil && framing([:], uri: "/healthz?a").problem == nil)
        for uri in ["/", "/healthz/", "/healthz.json", "/a?/healthz", "//healthz"] {
            #expect(framing([:], uri: uri).problem == .noHost, "\(uri)")
        }
        #expect(framing(["Host": "a", "host": "a"], uri: "/healthz").problem == .manyHosts)
        #expect(framing(["Host": "a b"], uri: "/healthz").problem == .wrongHost)
        #expect(framing(["Transfer-Encoding": "gzip"], uri: "/healthz").problem == .otherEncoding)
    }

    @Test func chunkedIsTheOnlyEncoding() {
        #expect(framing(["Host": "a", "Transfer-Encoding": "Chunked"]).problem == nil)
        for encoding in ["gzip, chunked", "identity", "chunked, chunked", "chunked;x"] {
            #expect(framing(["Host": "a", "transfer-encoding": encoding]).problem == .otherEncoding)
        }
        let twice = framing(["Host": "a", "transfer-encoding": "chunked", "Transfer-Encoding": "chunked"])
        #expect(twice.problem == .otherEncoding)
    }

    @Test func theOnlyExpectationIsToContinue() {
        let waiting = framing(["Host": "a", "Expect": "100-Continue", "Content-Length": "12"])
        #expect(waiting.waitsForContinue && waiting.problem == nil && waiting.bodyBytes == 12)
        #expect(!framing(["Host": "a", "Expect": "100-continue"], .http1_0).waitsForContinue)
        for expectation in ["foo", ""] {
            #expect(framing(["Host": "a", "Expect": expectation]).problem == .otherExpectation)
        }
        #expect(framing(["Host": "a"]).bodyBytes == nil && !framing(["Host": "a"]).waitsForContinue)
    }
}

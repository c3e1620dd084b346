import HatoModel
import Testing

@testable import HatoFirebase

/// The headers of responses, and what pages of other origins may do (spec auth §1).
@Suite struct AccountHeadersTests {
    private func headers(_ response: AccountResponse, _ origin: String? = nil) -> [String: String] {
        let headers = response.headers(forOrigin: origin)
        #expect(Set(headers.map(\.name)).count == headers.count)
        return Dictionary(headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
    }

    @Test func everyResponseIsForPagesOfAllOrigins() {
        let response = AccountResponse([:])
        #expect(headers(response)["Access-Control-Allow-Origin"] == "*")
        let page = headers(response, "https://chat.example.com")
        #expect(page["Access-Control-Allow-Origin"] == "https://chat.example.com" && page["Vary"] == "Origin")
        for odd in ["", "a b", "a\r\nb", "あ", String(repeating: "a", count: 513)] {
            #expect(headers(response, odd)["Access-Control-Allow-Origin"] == "*", "\(odd)")
        }
        #expect(page["Cache-Control"] == "no-store" && page["X-Content-Type-Options"] == "nosniff")
    }

    @Test func anOutageIsATextThatSaysWhenToComeBack() {
        let outage = headers(.outage(retryAfterSeconds: 7), "http://a.example")
        #expect(outage["Content-Type"] == "text/plain; charset=utf-8" && outage["Retry-After"] == "7")
        #expect(outage["Access-Control-Allow-Origin"] == "http://a.example")
    }

    @Test func pagesLoadNothingAndPassNoLinkOn() {
        let trial = AccountTrial(AccountRequest("GET", "/__/auth/action?mode=verifyEmail&oobCode=c"))
        let page = trial.response.map { headers($0) } ?? [:]
        #expect(page["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(page["Referrer-Policy"] == "same-origin")
        #expect(headers(.redirection(to: "http://a.example/?x=1"))["Location"] == "http://a.example/?x=1")
    }

    @Test func preflightsAllowWhatIsAsked() {
        let head = RESTHead(
            method: "OPTIONS", target: "/v1/accounts:lookup",
            headers: [
                ("Origin", "http://a.example"), ("Access-Control-Request-Headers", "x-client-version,x-firebase-gmpid"),
                ("Access-Control-Request-Private-Network", "true"),
            ])
        let answer = AccountResponse.preflight(head)
        #expect(answer.status == 204 && answer.header("Access-Control-Allow-Origin") == "http://a.example")
        #expect(answer.header("Access-Control-Allow-Headers") == "x-client-version,x-firebase-gmpid")
        #expect(answer.header("Access-Control-Allow-Private-Network") == "true")
        #expect(answer.header("Access-Control-Allow-Methods")?.contains("POST") == true)
        let plain = AccountResponse.preflight(
            RESTHead(
                method: "OPTIONS", target: "/v1/token", headers: [("Access-Control-Request-Headers", "a\r\nb: c")]))
        #expect(plain.header("Access-Control-Allow-Private-Network") == nil)
        #expect(plain.header("Access-Control-Allow-Headers")?.contains("b: c") == false)
    }
}

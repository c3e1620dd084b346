import HatoModel
import Testing

@testable import HatoFirebase

/// The pages behind the links of mails (spec auth §6).
@Suite struct AccountPageTests {
    private func get(_ query: String, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial(AccountRequest("GET", "/__/auth/action?\(query)"), .test, outcomes)
    }

    private func post(_ form: String, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial(AccountRequest("POST", "/__/auth/action", body: Array(form.utf8)), .test, outcomes)
    }

    private let settings: Result<JSONValue, RPCError> = .success(Native.settings())

    @Test(arguments: ["resetPassword", "verifyEmail", "verifyAndChangeEmail", "recoverEmail"])
    func openingALinkChangesNothing(mode: String) {
        let trial = get("mode=\(mode)&oobCode=c-1&lang=ja&apiKey=k")
        #expect(trial.calls.isEmpty && trial.status == 200)
        #expect(trial.text.contains("method=\"post\"") && trial.text.contains("value=\"c-1\""))
        #expect(trial.text.contains("newPassword") == (mode == "resetPassword"))
        #expect(trial.response?.contentSecurityPolicy?.hasPrefix("default-src 'none'") == true)
    }

    @Test func noTextOfALinkIsMarkup() {
        let trial = get(
            "mode=verifyEmail&oobCode=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&lang=%3Cb%3E'"
                + "&continueUrl=https://x/%22%3E%3Ci%3E")
        #expect(!trial.text.contains("<script") && !trial.text.contains("<b>") && !trial.text.contains("<i>"))
        #expect(trial.text.contains("&quot;&gt;&lt;script&gt;"))
        #expect(ActionPage.escaped("<&>\"'") == "&lt;&amp;&gt;&quot;&#39;")
    }

    @Test(arguments: ["", "mode=verifyEmail", "oobCode=c", "mode=other&oobCode=c", "mode=verifyEmail&oobCode="])
    func aLinkThatIsNoneIsRefused(query: String) {
        #expect(get(query).status == 400)
        #expect(post(query).status == 400)
    }

    @Test func aFormAppliesTheCode() {
        let trial = post(
            "mode=verifyEmail&oobCode=c-1", [settings, .success(["type": "verifyEmail", "email": "a@b.c"])])
        #expect(trial.calls.map(\.method) == ["auth.settings.get", "auth.code.apply"])
        #expect(trial.params == ["code": "c-1"])
        #expect(trial.status == 200 && trial.text.contains("Done"))
        let reset = post(
            "mode=resetPassword&oobCode=c-1&newPassword=secret+1", [settings, .success(["type": "passwordReset"])])
        #expect(reset.params == ["code": "c-1", "newPassword": "secret 1"])
        #expect(!reset.text.contains("secret"))
    }

    @Test func aFormGoesOnToKnownDomainsOnly() {
        let applied: Result<JSONValue, RPCError> = .success(["type": "verifyEmail"])
        func location(_ url: String) -> String? {
            post("mode=verifyEmail&oobCode=c&continueUrl=\(AccountPercentCoding.encoded(url))", [settings, applied])
                .response?.location
        }
        #expect(location("https://chat.example.com/done?a=1") == "https://chat.example.com/done?a=1")
        #expect(location("https://chat.example.com/完了") == "https://chat.example.com/%E5%AE%8C%E4%BA%86")
        for url in [
            "https://evil.example", "https://chat.example.com.evil.example", "https://chat.example.com@evil.example",
            "javascript://chat.example.com/%0aalert(1)", "https:chat.example.com", "//chat.example.com",
            "https://evil.example#@chat.example.com", "https://evil.example\\@chat.example.com", "https://\r\nX: 1",
        ] { #expect(location(url) == nil, "\(url)") }
    }

    @Test func aWeakOrMissingPasswordKeepsTheForm() {
        let missing = post("mode=resetPassword&oobCode=c-1")
        #expect(missing.calls.isEmpty && missing.status == 400 && missing.text.contains("c-1"))
        let weak = post(
            "mode=resetPassword&oobCode=c-1&newPassword=secret",
            [settings, .refused(.invalidArgument, "WEAK_PASSWORD")])
        #expect(weak.status == 400 && weak.text.contains("newPassword") && !weak.text.contains("secret"))
    }

    @Test func aUsedCodeSaysSoAndAnOutageDoesNot() {
        let used = post("mode=verifyEmail&oobCode=c", [settings, .refused(.invalidArgument, "INVALID_OOB_CODE")])
        #expect(used.status == 400 && used.text.contains("expired"))
        #expect(post("mode=verifyEmail&oobCode=c", [settings, .refused(.unavailable, "stopping")]).status == 504)
        #expect(post("mode=verifyEmail&oobCode=c", [.refused(.unavailable, "stopping")]).status == 503)
    }

    @Test func aLinkToSignInGoesToTheApp() {
        let query =
            "mode=signIn&oobCode=c-1&lang=en&apiKey=k&continueUrl=https%3A%2F%2Fchat.example.com%2Fin%3Fa%3D1%23f"
        let trial = get(query, [settings])
        #expect(trial.status == 303)
        #expect(
            trial.response?.location == "https://chat.example.com/in?a=1&mode=signIn&oobCode=c-1&lang=en&apiKey=k#f")
        let unknown = get("mode=signIn&oobCode=c&continueUrl=https%3A%2F%2Fevil.example", [settings])
        #expect(unknown.status == 400 && unknown.response?.location == nil)
        #expect(get("mode=signIn&oobCode=c", [settings]).status == 400)
        #expect(post("mode=signIn&oobCode=c").status == 400)
    }

    @Test func aHugeFormIsRefused() {
        #expect(post("mode=verifyEmail&oobCode=" + String(repeating: "c", count: 70_000)).status == 400)
    }

    // MARK: The link of an emulator

    private func open(_ query: String, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial(AccountRequest("GET", "/emulator/action?\(query)"), .emulator, outcomes)
    }

    @Test func theLinkOfAnEmulatorActsAtOnce() {
        let verified = open(
            "mode=verifyEmail&oobCode=c&apiKey=k", [.success(["type": "verifyEmail", "email": "a@b.c"])])
        #expect(verified.params == ["code": "c"])
        #expect(verified.json == ["authEmulator": ["success": "The code has been applied.", "email": "a@b.c"]])
        let onwards = open(
            "mode=verifyEmail&oobCode=c&continueUrl=http%3A%2F%2Flocalhost%2Fx", [.success(["type": "verifyEmail"])])
        #expect(onwards.status == 303 && onwards.response?.location == "http://localhost/x")
        let reset = open("mode=resetPassword&oobCode=c&newPassword=secret", [.success(["type": "passwordReset"])])
        #expect(reset.params == ["code": "c", "newPassword": "secret"])
        #expect(open("mode=resetPassword&oobCode=c").status == 400)
        let signIn = open("mode=signIn&oobCode=c&apiKey=k&continueUrl=http%3A%2F%2Flocalhost%2Fx")
        #expect(signIn.response?.location == "http://localhost/x?mode=signIn&oobCode=c&apiKey=k")
        #expect(open("mode=signIn&oobCode=c").status == 400)
        #expect(
            open("mode=verifyEmail&oobCode=c", [.refused(.invalidArgument, "INVALID_OOB_CODE")]).message
                == "INVALID_OOB_CODE")
    }
}
